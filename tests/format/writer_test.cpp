#include "penstock/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/load.h"
#include "penstock/ops.h"
#include "penstock/save.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::code_of;
using test::error_of;
using test::numbered_tensor;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor joined(const std::vector<Tensor>& parts) { return cat(parts, 0); }

class WriterTest : public testing::Test {
 protected:
  const Tensor rows = numbered_tensor({4, 3}, DType::float32);
  test::TemporaryFolder folder{test::quick_folder()};
};

class NamedWriterTest : public WriterTest, public testing::WithParamInterface<const char*> {
 protected:
  const std::string path = folder / GetParam();
};

INSTANTIATE_TEST_SUITE_P(Formats, NamedWriterTest, testing::Values("x.npz", "x.safetensors", "x.pt"),
                         [](const auto& row) { return std::string(row.param).substr(2); });

TEST_F(WriterTest, BlocksAndRowsBecomeOneArray) {
  const std::string path = folder / "x.npy";
  Writer writer(path, {.sync = false});
  writer.append(rows.slice(0, 0, 2));
  writer.append_row(rows[2]);
  writer.append(rows.slice(0, 0, 0));
  writer.append(rows.slice(0, 3, 4));
  EXPECT_EQ(writer.rows(), 4);
  EXPECT_EQ(writer.nbytes(), rows.nbytes());
  EXPECT_THAT(folder.names(), IsEmpty()) << "before it is finished";
  writer.finish();
  EXPECT_FALSE(writer.is_open());
  EXPECT_TRUE(Tensor::identical(load_tensor(path), rows));
  save(rows, folder / "y.npy");
  EXPECT_EQ(test::read_file(path), test::read_file(folder / "y.npy"));
}

TEST_F(WriterTest, RowsInAnyOrderOfElementsAreWrittenInTheirs) {
  const Tensor wide = numbered_tensor({3, 700, 1000}, DType::float32);  // rows of 2.8 MB, in pieces
  const Tensor turned = wide.transpose(0, 2).transpose(1, 2);
  Writer writer(folder / "x.npy", {.sync = false});
  writer.append(turned);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), turned.contiguous()));
}

TEST_F(WriterTest, ScalarsAreTheRowsOfOneDimension) {
  Writer writer(folder / "x.npy", {.sync = false});
  for (std::int64_t i = 0; i < 4; ++i) writer.append_row(rows[i][1]);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), rows.slice(1, 1, 2).contiguous().reshape({4})));
}

TEST_F(WriterTest, AnArrayWithoutRowsMustBeDeclared) {
  Writer writer(folder / "x.npy", {.sync = false});
  const auto error = error_of([&] { writer.finish(); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error->path(), folder / "x.npy");
  Writer declared(folder / "y.npy", {.dtype = DType::int16, .row_shape = Shape{2, 0}, .sync = false});
  declared.finish();
  const Tensor back = load_tensor(folder / "y.npy");
  EXPECT_EQ(back.shape(), (Shape{0, 2, 0}));
  EXPECT_EQ(back.dtype(), DType::int16);
}

TEST_F(WriterTest, OtherRowsAreRefusedAndChangeNothing) {
  Writer writer(folder / "x.npy", {.sync = false});
  EXPECT_EQ(code_of([&] { writer.append(rows[0][0]); }), ErrorCode::kShapeMismatch) << "a scalar has no rows";
  EXPECT_EQ(code_of([&] { writer.append(Tensor()); }), ErrorCode::kInvalidArgument);
  writer.append(rows);
  EXPECT_EQ(code_of([&] { writer.append(rows.to(DType::float64)); }), ErrorCode::kDTypeMismatch);
  const auto error = error_of([&] { writer.append(rows[0]); });
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(error->message(), HasSubstr("append_row"));
  EXPECT_THAT(error_of([&] { writer.append_row(rows); })->message(), HasSubstr("append adds a block"));
  EXPECT_EQ(code_of([&] { writer.append(numbered_tensor({1, 4}, DType::float32)); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { writer.add("a", rows); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { writer.begin("a", DType::float32, {3}); }), ErrorCode::kUnsupported);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), rows));
  EXPECT_EQ(code_of([&] { writer.append(rows); }), ErrorCode::kInvalidArgument) << "after finish";
  EXPECT_EQ(code_of([&] { writer.finish(); }), ErrorCode::kInvalidArgument);
}

TEST_F(WriterTest, WithoutFinishNothingIsLeft) {
  save(rows, folder / "x.npy");
  {
    Writer writer(folder / "x.npy");
    writer.append(numbered_tensor({1000, 1000}, DType::uint8));
    Writer moved = std::move(writer);
    moved.append(numbered_tensor({1, 1000}, DType::uint8));
  }
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), rows)) << "what was there stays";
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST_F(WriterTest, AFullDiskDropsTheFile) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 600'000, .rlim_max = before.rlim_max};
  const Tensor block = numbered_tensor({500'000}, DType::uint8);
  for (const char* name : {"x.npy", "resumed.npy"}) {
    if (name[0] == 'r') save(rows.to(DType::uint8).reshape({12}), folder / name);
    const std::string there = name[0] == 'r' ? test::read_file(folder / name) : std::string();
    Writer writer(folder / name, {.resume = name[0] == 'r', .sync = false});
    writer.append(block);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto error = error_of([&] { writer.append(block); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kIo);
    EXPECT_FALSE(writer.is_open());
    EXPECT_THAT(error_of([&] { writer.finish(); })->message(), HasSubstr("dropped its file after an error"));
    EXPECT_EQ(name[0] == 'r' ? test::read_file(folder / name) : std::string(), there);
  }
  EXPECT_THAT(folder.names(), testing::ElementsAre("resumed.npy"));
}

TEST_F(WriterTest, AWholeFileIsResumed) {
  const std::string path = folder / "x.npy";
  for (int round = 0; round < 3; ++round) {
    Writer writer(path, {.resume = true, .sync = round == 1});
    EXPECT_EQ(writer.rows(), 4 * round);
    writer.append(rows);
    writer.finish();
  }
  EXPECT_TRUE(Tensor::identical(load_tensor(path), joined({rows, rows, rows})));
  const std::string before = test::read_file(path);
  EXPECT_EQ(code_of([&] { Writer(path, {.resume = true, .dtype = DType::int8}); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code_of([&] { Writer(path, {.resume = true, .row_shape = Shape{4}}); }), ErrorCode::kShapeMismatch);
  Writer writer(path, {.resume = true});
  EXPECT_EQ(code_of([&] { writer.append(rows.to(DType::float64)); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code_of([&] { Writer(path, {.resume = true}); }), ErrorCode::kUnsupported) << "two at a time";
  writer.append(rows);
  EXPECT_TRUE(Tensor::identical(load_tensor(path), joined({rows, rows, rows}))) << "readers see the old rows";
  writer.discard();
  EXPECT_EQ(test::read_file(path), before);
}

TEST_F(WriterTest, AFileOfAProcessThatWasKilledIsResumedFromItsRows) {
  const std::string path = folder / "x.npy";
  save(rows, path);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Writer fresh(folder / "new.npy");
    fresh.append(rows);
    Writer writer(path, {.resume = true});
    writer.append(numbered_tensor({100, 3}, DType::float32));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(folder.names().size(), 1U) << "a new file of it is not there";
  EXPECT_TRUE(Tensor::identical(load_tensor(path), rows));
  Writer writer(path, {.resume = true});
  writer.append(rows);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(path), joined({rows, rows})));
  save(joined({rows, rows}), folder / "y.npy");
  EXPECT_EQ(test::read_file(path), test::read_file(folder / "y.npy"));
}

TEST_F(WriterTest, AForkedChildLeavesTheFileToItsParent) {
  const std::string path = folder / "x.npy";
  Writer writer(path);
  writer.append(rows);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused = code_of([&] { writer.append(rows); }) == ErrorCode::kInvalidArgument &&
                         code_of([&] { writer.finish(); }) == ErrorCode::kInvalidArgument;
    writer.discard();
    ::_exit(refused ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  writer.append(rows);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(path), joined({rows, rows})));
}

TEST_F(WriterTest, WhatCannotBeResumedIsRefusedAndLeftAlone) {
  const std::string whole = [&] {
    save(rows, folder / "x.npy");
    return test::read_file(folder / "x.npy");
  }();
  save(rows.transpose(0, 1), folder / "fortran.npy");
  save(rows[0][0], folder / "scalar.npy");
  test::write_file(folder / "cut.npy", std::string_view(whole).substr(0, whole.size() - 1));
  test::write_file(folder / "empty.npy", std::string_view());
  test::write_file(folder / "two.npy", whole + whole);
  const std::vector<std::pair<const char*, ErrorCode>> cases = {
      {"fortran.npy", ErrorCode::kUnsupported}, {"scalar.npy", ErrorCode::kUnsupported},
      {"cut.npy", ErrorCode::kTruncated},       {"empty.npy", ErrorCode::kTruncated},
      {"two.npy", ErrorCode::kUnsupported},     {"x.npz", ErrorCode::kUnsupported},
      {"none/x.npy", ErrorCode::kNotFound}};
  for (const auto& [name, code] : cases) {
    const auto error = error_of([&, file = folder / name] { Writer(file, {.resume = true}); });
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(error->code(), code) << name << ": " << error->what();
    EXPECT_EQ(error->path(), folder / name);
  }
  EXPECT_EQ(test::read_file(folder / "two.npy"), whole + whole);
}

TEST_F(WriterTest, HeadersOfOthersAreResumedAsTheyAre) {
  const std::string text = "{\"shape\" : ( 8, 1), 'fortran_order': True, 'descr': [('shape', '>i2')]}    \n";
  std::string file = std::string("\x93NUMPY\x02\x00", 8) + static_cast<char>(text.size()) + std::string(3, '\0') + text;
  file += "0123456789ABCDEF";
  test::write_file(folder / "x.npy", file);
  const Tensor more = load_tensor(folder / "x.npy").slice(0, 0, 3);
  Writer writer(folder / "x.npy", {.resume = true});
  writer.append(more);
  writer.finish();
  EXPECT_THAT(test::read_file(folder / "x.npy"), HasSubstr("( 11, 1), 'fortran_order': True"));
  EXPECT_THAT(test::read_file(folder / "x.npy"), testing::EndsWith("ABCDEF012345"));
  EXPECT_EQ(load_tensor(folder / "x.npy").shape(), (Shape{11, 1}));
  Writer full(folder / "x.npy", {.resume = true});
  const auto error = error_of([&] { full.append(Tensor::zeros({100'000, 1}, more.dtype())); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), HasSubstr("no room for more than 99999 rows"));
}

TEST_F(WriterTest, AResumedFileKeepsItsByteOrder) {
  Tensor swapped = rows.clone();
  for (std::size_t i = 0; i < swapped.nbytes(); i += 4) {
    std::swap(swapped.data()[i], swapped.data()[i + 3]);
    std::swap(swapped.data()[i + 1], swapped.data()[i + 2]);
  }
  save(swapped, folder / "x.npy");
  std::string file = test::read_file(folder / "x.npy");
  file.replace(file.find("<f4"), 3, ">f4");
  test::write_file(folder / "x.npy", file);
  Writer writer(folder / "x.npy", {.resume = true});
  writer.append(rows);
  writer.finish();
  EXPECT_THAT(test::read_file(folder / "x.npy"), HasSubstr(">f4"));
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.npy"), joined({rows, rows})));
}

TEST_P(NamedWriterTest, TensorsAreReadAsTheyWereWritten) {
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"mask", numbered_tensor({5}, DType::boolean)},          {"w.0", rows},
      {"half", numbered_tensor({3}, DType::float16)},          {"scalar", rows[0][0]},
      {"none", Tensor::zeros({0, 7}, DType::int64)},           {"turned", rows.transpose(0, 1)},
      {"long", numbered_tensor({2, 2}, DType::int64)},         {"é", numbered_tensor({3, 5}, DType::uint8)},
      {"large", numbered_tensor({1'500'000}, DType::float32)}, {"behind", numbered_tensor({9}, DType::float64)}};
  for (const std::size_t count : {std::size_t{0}, std::size_t{7}, tensors.size()}) {
    Writer writer(path, {.sync = false});
    for (std::size_t i = 0; i < count; ++i) writer.add(tensors[i].first, tensors[i].second);
    writer.finish();
    const Archive archive = open(path);
    ASSERT_EQ(archive.entries().size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [name, tensor] = tensors[i];
      const LazyTensor entry = archive[name];
      EXPECT_TRUE(Tensor::identical(entry.load(), tensor.contiguous())) << name;
      const std::uint64_t at = archive.storages()[entry.entry().storage].offset + entry.entry().byte_offset;
      if (archive.format() == "safetensors" && tensor.numel() != 0) {
        EXPECT_EQ(at % tensor.dtype().itemsize(), 0U) << name << " lies aligned";
      }
    }
  }
}

TEST_P(NamedWriterTest, ATensorComesInPieces) {
  Writer writer(path, {.sync = false});
  writer.begin("a", rows.dtype(), {8, 3});
  writer.append(rows);
  EXPECT_EQ(code_of([&] { writer.append(rows.to(DType::int32)); }), ErrorCode::kDTypeMismatch);
  const auto early = error_of([&] { writer.add("b", rows); });
  EXPECT_EQ(early->code(), ErrorCode::kShapeMismatch);
  EXPECT_EQ(early->tensor(), "a") << early->what();
  EXPECT_EQ(code_of([&] { writer.finish(); }), ErrorCode::kShapeMismatch);
  writer.append(rows);
  EXPECT_EQ(code_of([&] { writer.append_row(rows[0]); }), ErrorCode::kShapeMismatch) << "more than declared";
  writer.add("b", rows);
  EXPECT_EQ(code_of([&] { writer.append(rows); }), ErrorCode::kInvalidArgument) << "nothing was begun";
  writer.begin("none", DType::int8, {0, 2});
  writer.finish();
  const Archive archive = open(path);
  EXPECT_TRUE(Tensor::identical(archive["a"].load(), joined({rows, rows})));
  EXPECT_TRUE(Tensor::identical(archive["b"].load(), rows));
  EXPECT_EQ(archive["none"].shape(), (Shape{0, 2}));
}

TEST_P(NamedWriterTest, WrongArgumentsChangeNothing) {
  EXPECT_EQ(code_of([&] { Writer(path, {.resume = true}); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { Writer(path, {.dtype = DType::int8}); }), ErrorCode::kUnsupported);
  Writer writer(path, {.sync = false});
  writer.add("a", rows);
  const auto twice = error_of([&] { writer.add("a", rows); });
  EXPECT_EQ(twice->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(twice->tensor(), "a");
  EXPECT_EQ(code_of([&] { writer.begin("a", DType::int8, {1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { writer.begin("s", DType::int8, {}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { writer.begin("n", DType::int8, {2, -1}); }), ErrorCode::kInvalidArgument);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(code_of([&] { writer.begin("n", DType::int64, {kMost}); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { writer.begin("n", DType::int64, {kMost, kMost}); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { writer.append(rows); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { writer.add("u", Tensor()); }), ErrorCode::kInvalidArgument);
  if (!path.ends_with(".npz")) {
    const Tensor text = Tensor::zeros({2}, DType::with_descr(DType::Code::kVoid, 3, "V3"));
    EXPECT_EQ(code_of([&] { writer.add("t", text); }), ErrorCode::kUnsupported);
  }
  writer.add("b", rows);
  writer.finish();
  const Archive archive = open(path);
  EXPECT_EQ(archive.entries().size(), 2U);
  EXPECT_EQ(code_of([&] { writer.add("c", rows); }), ErrorCode::kInvalidArgument) << "after finish";
}

TEST_F(WriterTest, ManyTensorsOfSafetensorsNeedALongerHeader) {
  Writer writer(folder / "x.safetensors", {.metadata = {{{"made", "here"}}}, .sync = false});
  writer.add("large", numbered_tensor({5 << 20}, DType::uint8));
  for (int i = 0; i < 1500; ++i) writer.add("a tensor with a long name " + std::to_string(i), rows);
  writer.add("odd", numbered_tensor({3}, DType::uint8));
  writer.finish();
  const Archive archive = open(folder / "x.safetensors");
  EXPECT_EQ(archive.metadata().at("made"), "here");
  EXPECT_TRUE(Tensor::identical(archive["large"].load(), numbered_tensor({5 << 20}, DType::uint8)));
  EXPECT_TRUE(Tensor::identical(archive["a tensor with a long name 1499"].load(), rows));
  EXPECT_TRUE(Tensor::identical(archive["odd"].load(), numbered_tensor({3}, DType::uint8)));
}

TEST_F(WriterTest, MembersOfAnNpzAreDeflatedOnTheWay) {
  const Tensor zeros = Tensor::zeros({300'000}, DType::float64);
  Writer writer(folder / "x.npz", {.compress = true, .sync = false});
  writer.begin("a", zeros.dtype(), zeros.shape());
  for (std::int64_t at = 0; at < 300'000; at += 100'000) writer.append(zeros.slice(0, at, at + 100'000));
  writer.add("b", rows);
  writer.finish();
  EXPECT_LT(test::read_file(folder / "x.npz").size(), 10'000U);
  EXPECT_TRUE(Tensor::identical(open(folder / "x.npz")["a"].load(), zeros));
  EXPECT_TRUE(Tensor::identical(open(folder / "x.npz")["b"].load(), rows));
}

TEST_F(WriterTest, ATarGetsNoMemberThatItsReaderWouldNotFind) {
  const std::string path = folder / "x.tar";
  Writer writer(path, {.sync = false});
  writer.add("a", rows);
  writer.add("a.Mask", rows);
  for (const char* name : {"a.npy", "a.mask", "a.MASK.npy", "__x__", ".hidden", "b/.hidden", "b/", ""}) {
    const auto error = error_of([&] { writer.add(name, rows); });
    ASSERT_TRUE(error) << name;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(error->path(), path);
  }
  EXPECT_EQ(code_of([&] { writer.begin("a.npy", DType::int8, {1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              writer.add_sample({{"__key__", "a"}, {"x", 1}});
            }),
            ErrorCode::kInvalidArgument)
      << "readers would take it for a part of the sample that the tensors are";
  writer.add_sample({{"__key__", "b"}, {"x", 1}});
  writer.add("b", rows);  // a field that the sample has not
  EXPECT_EQ(code_of([&] { writer.begin("b.npy", DType::int8, {1}); }), ErrorCode::kInvalidArgument);
  writer.finish();
  const Value samples = load(path);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].size(), 3U);
  EXPECT_TRUE(Tensor::identical(samples[0]["mask.npy"].as_tensor(), rows));
  EXPECT_EQ(samples[1]["x.cls"].as_int(), 1);
  EXPECT_TRUE(Tensor::identical(samples[1]["npy"].as_tensor(), rows));
}

TEST_F(WriterTest, AWrongSampleLeavesTheTarAsItWas) {
  const std::string path = folder / "x.tar";
  Writer writer(path, {.sync = false});
  writer.add_sample({{"x", 1}});
  const std::vector<Value> wrong = {Value{{"__key__", 5}, {"x", 1}},
                                    Value{{"__key__", Value()}, {"x", 1}},
                                    Value{{"__KEY__", Value::bytes("a")}},
                                    Value{{"x.npy", Value{{"a", rows}}}},
                                    Value{{"x.cls", "text"}},
                                    Value{{"x.json", Value{{"a", Value::string("\xff")}}}},
                                    Value{{"x", 1}, {"X", 2}},
                                    Value{{"a/b", 1}},
                                    Value::dict(std::vector<Value::Item>{}),
                                    Value{{"x.pt", rows.to(DType::complex32)}, {"x.npy", Value()}}};
  for (const Value& sample : wrong) {
    const auto error = error_of([&] { writer.add_sample(sample); });
    ASSERT_TRUE(error) << sample;
    EXPECT_EQ(error->path(), path) << error->what();
  }
  const auto inner = error_of([&] { writer.add_sample({{"w.npz", Value{{"a", Value::list({rows})}}}}); });
  EXPECT_EQ(inner->tensor(), "w.npz") << inner->what();
  writer.add_sample({{"x", 2}});
  writer.finish();
  EXPECT_EQ(load(path).size(), 2U);
}

TEST_F(WriterTest, ARelativePathStaysWhereItWasWhenTheWorkingFolderChanges) {
  const std::string before = std::filesystem::current_path();
  for (const std::string name : {"x.npy", "x.npz", "x.safetensors", "x.pt", "x.tar"}) {
    std::filesystem::current_path(folder.path());
    std::filesystem::create_directory("out");
    Writer writer("out/" + name, {.sync = false});
    std::filesystem::current_path(before);
    const Tensor odd = numbered_tensor({3}, DType::uint8);
    name == "x.npy" ? writer.append(odd) : writer.add("a", odd);
    writer.finish();
    const Archive archive = open(folder / ("out/" + name));
    EXPECT_EQ(archive.entries().size(), 1U) << name;
  }
}

TEST_F(WriterTest, ThePathAndOptionsAreChecked) {
  EXPECT_EQ(code_of([&] { Writer(folder / "x.bin"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { Writer(folder / "x.npy", {.compress = true}); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { Writer(folder / "none/x.npy"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { Writer(folder / "x.npy", {.row_shape = Shape{-1}}); }), ErrorCode::kInvalidArgument);
  Writer writer(folder / "x.bin", {.format = "npy", .sync = false});
  writer.append(rows);
  writer.finish();
  EXPECT_TRUE(Tensor::identical(load_tensor(folder / "x.bin"), rows));
}

TEST(NoWriter, IsClosedAsOneThatWasMovedFrom) {
  const test::TemporaryFolder folder;
  Writer moved(folder / "x.npz");
  Writer writer = std::move(moved);
  Writer none;
  for (Writer* closed : {&moved, &none}) {  // NOLINT(bugprone-use-after-move)
    EXPECT_FALSE(closed->is_open());
    EXPECT_EQ(closed->path(), "");
    EXPECT_EQ(closed->rows(), 0);
    EXPECT_EQ(closed->nbytes(), 0U);
    closed->discard();
    const auto error = test::error_of([&] { closed->add("x", Tensor::of({1})); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(test::code_of([&] { closed->append(Tensor::of({1})); }), ErrorCode::kInvalidArgument);
    EXPECT_EQ(test::code_of([&] { closed->finish(); }), ErrorCode::kInvalidArgument);
  }
  writer.add("x", Tensor::of({1}));
  writer.finish();
}

}  // namespace
}  // namespace penstock
