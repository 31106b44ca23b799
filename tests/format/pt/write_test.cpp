#include "format/pt/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "format/pt/pickle/structure.h"
#include "format/pt/storages.h"
#include "format/rows.h"
#include "format/zip/reader.h"
#include "format/zip/writer.h"
#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::format {
namespace {

using namespace std::string_literals;
using test::bytes_of;
using test::code_of;
using test::error_of;
using test::numbered_tensor;
using test::source_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Value::Kind;

std::string written(const Value& value, std::string_view path = "folder/model.pt") {
  test::StringSink sink;
  kPtFormat.write(value, sink, {}, path);
  return sink.text;
}
Archive archive_of(const Value& value) { return open(source_of(written(value))); }
Value again(const Value& value) { return archive_of(value).load(); }

std::vector<std::string> records_of(const std::string& file) {
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(file), "m.pt", entries);
  std::vector<std::string> out;
  for (const ZipEntry& entry : entries) out.emplace_back(entry.name);
  return out;
}
std::string record_of(const std::string& file, std::string_view name) {
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(file), "m.pt", entries);
  for (const ZipEntry& entry : entries) {
    if (entry.name == name) return file.substr(entry.data_offset, entry.size);
  }
  return {};
}

TEST(PtWrite, RecordsAreTorchs) {
  const std::string file = written(Value::list(
      {Value::tensor(numbered_tensor({3}, DType::float32)), Value::tensor(numbered_tensor({2}, DType::int8))}));
  EXPECT_THAT(records_of(file),
              ElementsAre("model/data.pkl", "model/.format_version", "model/.storage_alignment", "model/byteorder",
                          "model/data/0", "model/data/1", "model/version", "model/.data/serialization_id"));
  EXPECT_EQ(record_of(file, "model/version"), "3\n");
  EXPECT_EQ(record_of(file, "model/.data/serialization_id").size(), 40U);
  std::vector<ZipEntry> entries;
  read_zip_directory(bytes_of(file), "m.pt", entries);
  for (const ZipEntry& entry : entries) EXPECT_EQ(entry.data_offset % 64, 0U) << entry.name;
}

TEST(PtWrite, ThePickleIsTorchsToTheByte) {
  // torch.save(OrderedDict(a=x, b=x[1:]), ...) where x = torch.arange(12.).reshape(3, 4), dumped from torch 2.13.
  const std::string expected =
      "\x80\x02"
      "ccollections\nOrderedDict\nq\x00)Rq\x01(X\x01\x00\x00\x00"
      "aq\x02"
      "ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04"
      "ctorch\nFloatStorage\nq\x05X\x01\x00\x00\x00"
      "0q\x06X\x03\x00\x00\x00"
      "cpuq\x07K\x0ctq\x08QK\x00K\x03K\x04\x86q\tK\x04K\x01\x86q\n\x89h\x00)Rq\x0btq\x0cRq\rX\x01\x00\x00\x00"
      "bq\x0eh\x03((h\x04h\x05h\x06h\x07K\x0ctq\x0fQK\x04K\x02K\x04\x86q\x10K\x04K\x01\x86q\x11\x89h\x00)Rq\x12tq\x13Rq\x14u."s;
  const Tensor x = numbered_tensor({3, 4}, DType::float32);
  const Value value =
      Value::dict({{"a", Value::tensor(x)}, {"b", Value::tensor(x.slice(0, 1, 3))}}, "collections.OrderedDict");
  EXPECT_EQ(record_of(written(value), "model/data.pkl"), expected);
}

TEST(PtWrite, TheFolderIsTheFilesName) {
  const Value none;
  EXPECT_EQ(records_of(written(none, "/a/b.c/weights.v2.pt"))[0], "weights.v2/data.pkl");
  EXPECT_EQ(records_of(written(none, ".pt"))[0], "archive/data.pkl");
  EXPECT_EQ(records_of(written(none, "\u00e9.pt"))[0], "archive/data.pkl");
  EXPECT_EQ(records_of(written(none, "...pt"))[0], "archive/data.pkl");
}

TEST(PtWrite, EveryPlainValueComesBack) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Value value = Value::dict(std::vector<Value::Item>{
      {Value::string("none"), Value()},
      {Value::string("flags"), Value::list({Value::boolean(true), Value::boolean(false)})},
      {Value::string("ints"),
       Value::tuple({Value::integer(0), Value::integer(255), Value::integer(256), Value::integer(65536),
                     Value::integer(-1), Value::integer(std::int64_t{1} << 31),
                     Value::integer(std::numeric_limits<std::int64_t>::min())})},
      {Value::string("big"), Value::big_integer("-123456789012345678901234567890")},
      {Value::string("reals"), Value::list({Value::real(-0.0), Value::real(1e308), Value::real(nan)})},
      {Value::string("complex"), Value::complex({1.5, -2})},
      {Value::string("text"), Value::string("\u20ac \0 \U0001F600"s)},
      {Value::string("bytes"), Value::bytes("\x00\xff\x7f"s)},
      {Value::string("no bytes"), Value::bytes("")},
      {Value::string("dtype"), Value::dtype(DType::bfloat16)},
      {Value::string("size"), Value::tuple({Value::integer(2), Value::integer(3)}, "torch.Size")},
      {Value::string("device"), Value::object("torch.device", {Value::string("cuda"), Value::integer(1)})},
      {Value::string("set"), Value::set({Value::integer(1), Value::string("x")})},
      {Value::string("empty"),
       Value::list({Value::list({}), Value::tuple({}), Value::dict(std::vector<Value::Item>{}), Value::set({})})},
      {Value::integer(7), Value::dict({{"c", Value::integer(2)}}, "collections.Counter")},
      {Value::tuple({Value::integer(1), Value::string("k")}), Value::boolean(true)},
  });
  EXPECT_EQ(again(value).to_string(), value.to_string());
  const Value loaded = again(value);
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPECT_EQ(loaded.item(i).second.to_string(), value.item(i).second.to_string());
    EXPECT_EQ(loaded.item(i).second.type_name(), value.item(i).second.type_name());
  }
  EXPECT_EQ(loaded["text"].as_string(), value["text"].as_string());
  EXPECT_EQ(loaded["bytes"].as_string(), value["bytes"].as_string());
  EXPECT_TRUE(std::signbit(loaded["reals"][0].as_float()));
}

TEST(PtWrite, EveryDTypeComesBack) {
  for (const char* name : {"bool",           "uint8",         "uint16",      "uint32",          "uint64",
                           "int8",           "int16",         "int32",       "int64",           "float16",
                           "bfloat16",       "float32",       "float64",     "complex32",       "complex64",
                           "complex128",     "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                           "float8_e8m0fnu", "bits8",         "bits16",      "float4_e2m1fn_x2"}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 4}}) {
      const Tensor tensor = numbered_tensor(shape, *DType::from_name(name));
      const Tensor loaded = again(Value::tensor(tensor)).as_tensor();
      EXPECT_TRUE(Tensor::identical(loaded, tensor)) << name;
    }
  }
}

TEST(PtWrite, OrderedDictsKeepTheirMetadata) {
  const Value plain =
      Value::dict({{"w", Value::tensor(numbered_tensor({2}, DType::float32))}}, "collections.OrderedDict");
  EXPECT_EQ(again(plain).type_name(), "collections.OrderedDict");
  // A state comes only from a file.
  const std::string state_dict =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R}X\x09\x00\x00\x00_metadata}X\x00\x00\x00\x00K\x01ssb."s;
  const Archive archive = open(source_of([&] {
    test::StringSink sink;
    ZipWriter zip(sink, ZipStyle::kTorch);
    zip.add_text("a/data.pkl", state_dict);
    zip.add_text("a/version", "3\n");
    zip.finish();
    return sink.text;
  }()));
  const Value loaded = again(archive.load());
  ASSERT_TRUE(loaded.state());
  EXPECT_EQ((*loaded.state())["_metadata"][""].as_int(), 1);
}

TEST(PtWrite, MarksStay) {
  const Tensor real = numbered_tensor({2}, DType::float32).with_requires_grad(true);
  const Tensor whole_numbers = numbered_tensor({2}, DType::int32).with_requires_grad(true);
  EXPECT_TRUE(again(Value::tensor(real)).as_tensor().requires_grad());
  EXPECT_FALSE(again(Value::tensor(whole_numbers)).as_tensor().requires_grad());  // torch has none for integers
}

TEST(PtWrite, ViewsStayShared) {
  const Tensor base = numbered_tensor({4, 6}, DType::int32);
  const Value loaded = again(Value::list({Value::tensor(base), Value::tensor(base.transpose(0, 1)),
                                          Value::tensor(base.select(1, 2)), Value::tensor(base.slice(0, 1, 3))}));
  const Buffer memory = loaded[0].as_tensor().buffer();
  EXPECT_TRUE(Tensor::identical(loaded[1].as_tensor(), base.transpose(0, 1)));
  EXPECT_TRUE(Tensor::identical(loaded[2].as_tensor(), base.select(1, 2)));
  for (std::size_t i = 1; i < 4; ++i) {
    const Tensor part = loaded[i].as_tensor();
    EXPECT_TRUE(part.buffer().shares_memory_with(memory));
    EXPECT_EQ(part.data() - memory.data(), (std::vector<std::ptrdiff_t>{0, 0, 8, 24})[i]);
  }
  EXPECT_EQ(loaded[1].as_tensor().strides(), (Strides{1, 6}));
}

TEST(PtWrite, OneNodeIsWrittenOnce) {
  const Value leaf = Value::tensor(numbered_tensor({2}, DType::float32));
  const Value list = Value::list({leaf});
  const Value loaded = again(Value::dict({{"a", list}, {"b", list}, {"c", leaf}}));
  EXPECT_TRUE(loaded["a"].same_node(loaded["b"]));
  EXPECT_TRUE(loaded["a"][0].same_node(loaded["c"]));
}

TEST(PtWrite, OfALargeBufferOnlyWhatIsUsed) {
  const Tensor large = Tensor::zeros({1'000'000}, DType::uint8);
  const Value value =
      Value::list({Value::tensor(large.slice(0, 10, 20)), Value::tensor(large.slice(0, 900'000, 900'010))});
  EXPECT_LT(written(value).size(), 4000U);
  // Near each other they are one storage still.
  const Archive near =
      archive_of(Value::list({Value::tensor(large.slice(0, 0, 10)), Value::tensor(large.slice(0, 15, 25))}));
  EXPECT_EQ(near.storages().size(), 1U);
  EXPECT_EQ(near.storages()[0].nbytes, 25U);
}

TEST(PtWrite, TensorsOfTwoDTypesOverOneMemory) {
  const Tensor base = numbered_tensor({4}, DType::float32);
  const Tensor bits(base.buffer(), DType::int32, {4});
  const Value loaded = again(Value::list({Value::tensor(base), Value::tensor(bits)}));
  const Tensor floats = loaded[0].as_tensor();
  const Tensor integers = loaded[1].as_tensor();
  EXPECT_TRUE(Tensor::identical(floats, base));
  EXPECT_TRUE(Tensor::identical(integers, bits));
  EXPECT_EQ(floats.data(), integers.data());
}

TEST(PtWrite, TensorsThatCannotShareAreApart) {
  const Buffer memory = Buffer::allocate(64);
  std::memset(memory.data(), 7, 64);
  const Tensor even(memory, DType::int32, {4}, {1}, 0);
  const Tensor odd(memory, DType::int32, {4}, {1}, 2);
  const Archive archive = archive_of(Value::list({Value::tensor(even), Value::tensor(odd)}));
  EXPECT_EQ(archive.storages().size(), 2U);
  EXPECT_TRUE(Tensor::identical(archive["1"].load(), odd));
}

TEST(PtWrite, ExpandedTensorsStaySmall) {
  const Tensor one = numbered_tensor({1}, DType::float32);
  const Tensor expanded(one.buffer(), DType::float32, {1000, 1000}, {0, 0});
  EXPECT_LT(written(Value::tensor(expanded)).size(), 3000U);
  EXPECT_EQ(again(Value::tensor(expanded)).as_tensor().strides(), (Strides{0, 0}));
}

TEST(PtWrite, LongContainersAndMemos) {
  std::vector<Value> items;
  for (int i = 0; i < 2500; ++i) items.push_back(Value::string("item " + std::to_string(i)));
  items.push_back(items[2000]);
  std::vector<Value::Item> pairs;
  for (int i = 0; i < 2500; ++i) pairs.emplace_back(Value::integer(i), items[static_cast<std::size_t>(i)]);
  const Value loaded =
      again(Value::tuple({Value::list(items), Value::dict(pairs), Value::tuple(items), Value::set(items)}));
  for (const std::size_t kind : {0U, 2U, 3U}) {
    ASSERT_EQ(loaded[kind].size(), 2501U);
    EXPECT_EQ(loaded[kind][2500].as_string(), "item 2000");
  }
  EXPECT_EQ(loaded[1].item(2499).second.as_string(), "item 2499");
}

TEST(PtWrite, WhatTorchWouldNotLoadIsRefusedByName) {
  const auto says = [](const Value& value) {
    const auto error = error_of([&] { written(Value::dict({{"outer", Value::list({value})}})); });
    if (!error) return std::string("no error");
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    // What is no tensor is not called one.
    if (error->tensor().empty()) return error->message();
    EXPECT_EQ(error->tensor(), "outer.0");
    return "tensor: " + error->message();
  };
  const auto of_a_tensor = [](const char* part) {
    return testing::AllOf(testing::StartsWith("tensor: "), HasSubstr(part));
  };
  const auto of_a_value = [](const char* part) {
    return testing::AllOf(testing::StartsWith("at 'outer.0': "), HasSubstr(part));
  };
  EXPECT_THAT(says(Value::object("mypkg.Config", {})), of_a_value("'mypkg.Config'"));
  EXPECT_THAT(says(Value::global("os.system")), of_a_value("'os.system'"));
  EXPECT_THAT(says(Value::global("torch.sparse_coo_tensor")), of_a_value("'torch.sparse_coo_tensor'"));
  EXPECT_THAT(says(Value::global("torch.per_foo")), of_a_value("'torch.per_foo'"));
  const Value tensor = Value::tensor(numbered_tensor({2}, DType::float32));
  for (const char* name : {"torch.sparse_coo_tensor", "torch.sparse_bsr_tensor", "torch.nested_tensor"}) {
    EXPECT_THAT(says(Value::object(name, {tensor, tensor, tensor})), of_a_tensor(name));
    EXPECT_THAT(says(Value::object(name, {tensor, Value(), Value::tuple({}), tensor})), of_a_tensor(name));
  }
  EXPECT_THAT(says(Value::object("torch.meta_tensor", {})), of_a_tensor("meta tensor"));
  EXPECT_THAT(says(Value::set({}, "frozenset")), of_a_value("frozenset"));
  EXPECT_THAT(says(Value::dict(std::vector<Value::Item>{}, "collections.defaultdict")), of_a_value("defaultdict"));
  EXPECT_THAT(says(Value::tuple({Value()}, "my.Point")), of_a_value("my.Point"));
  EXPECT_THAT(says(Value::tensor(Tensor::empty({2}, DType::with_descr(DType::Code::kText, 8, "<U2")))),
              of_a_tensor("torch has no"));
  EXPECT_THAT(says(Value::tensor(Tensor::empty({2}, DType(DType::Code::kQInt8)))), of_a_tensor("scale"));
  EXPECT_THAT(says(Value::tensor(Tensor::empty({2}, DType(DType::Code::kFloat6E2M3)))), of_a_tensor("torch has no"));
  EXPECT_THAT(says(Value::dtype(DType::with_descr(DType::Code::kText, 8, "<U2"))), of_a_value("no dtype"));
  EXPECT_THAT(says(Value::big_integer("1" + std::string(700, '0'))), of_a_value("255"));
  EXPECT_EQ(code_of([] { written(Value::entry(0)); }), ErrorCode::kInvalidArgument);
}

/// A dict of these two and of more keys than are compared one by one.
Value many_keys(const Value& first, const Value& last) {
  std::vector<Value::Item> items{{first, Value()}};
  for (int i = 100; i < 120; ++i) items.emplace_back(Value::string(std::to_string(i)), Value());
  items.emplace_back(last, Value());
  return Value::dict(std::move(items));
}

TEST(PtWrite, KeysThatDifferAreNotTaken) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [first, last] : std::vector<std::pair<Value, Value>>{
           {Value::string("7"), Value::integer(7)},
           {Value::real(nan), Value::real(nan)},
           {Value::boolean(true), Value::integer(1)},
           {Value::string("a"), Value::bytes("a")},
           {Value::dtype(DType::int8), Value::dtype(DType::uint8)},
           {Value::tuple({Value::integer(1)}), Value::tuple({Value::integer(2)})},
           {Value::tuple({Value()}), Value()},
       }) {
    EXPECT_EQ(again(many_keys(first, last)).size(), 22U) << first.to_string();
    EXPECT_EQ(again(Value::dict(std::vector<Value::Item>{{first, last}, {last, first}})).size(), 2U);
  }
}

TEST(PtWrite, WhatCannotBeReadBackIsRefused) {
  const Value tensor = Value::tensor(numbered_tensor({2}, DType::float32));
  const Value one = Value::integer(1);
  const std::pair<Value, const char*> rows[] = {
      {Value::object("torch.device", {}), "'torch.device' has 0 arguments"},
      {Value::object("torch.device", {one}), "device given to 'torch.device' is not a string"},
      {Value::object("torch.device", {Value::string("cpu")}, one), "attributes"},
      {Value::object("torch.meta_tensor", {one, one, one, one}), "not a dtype"},
      {Value::object("torch.marked_tensor", {tensor, Value(), Value()}), "not True or False"},
      {Value::object("torch.nn.parameter.Parameter", {tensor, one}), "not True or False"},
      {Value::object("torch.nn.parameter.Parameter", {one, Value::boolean(true)}), "not a tensor"},
      {Value::object("torch.sparse_coo_tensor", {tensor, tensor, Value::tuple({one})}), "dimension"},
      {Value::tuple({Value::string("3")}, "torch.Size"), "not an integer"},
      {Value::string("\xff"), "not UTF-8"},
      {Value::dict({{"\xff", one}}), "not UTF-8"},
      {Value::set({Value::list({})}), "hash"},
      {Value::dict({{"a", one}, {"b", one}, {"a", Value()}}), "the key 'a' twice"},
      {Value::dict(std::vector<Value::Item>{{one, one}, {one, tensor}}), "the key '1' twice"},
      {Value::dict(std::vector<Value::Item>{{Value(), one}, {Value(), one}}), "twice"},
      {Value::dict(std::vector<Value::Item>{{Value::tuple({Value::list({})}), one}}), "hash"},
      {many_keys(Value::string("7"), Value::string("7")), "the key '7' twice"},
      {many_keys(Value::integer(7), Value::integer(7)), "the key '7' twice"},
      {many_keys(Value::real(0.0), Value::real(-0.0)), "twice"},
      {many_keys(Value::boolean(true), Value::boolean(true)), "twice"},
      {many_keys(Value::dtype(DType::int8), Value::dtype(DType::int8)), "twice"},
      {many_keys(Value::tuple({one, Value::string("a")}), Value::tuple({one, Value::string("a")})), "twice"},
  };
  for (const auto& [value, message] : rows) {
    const auto error = error_of([&value = value] { written(Value::list({value})); });
    ASSERT_TRUE(error) << message;
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(message));
  }
}

TEST(PtWrite, DepthIsBounded) {
  Value deep;
  for (std::size_t i = 0; i + 1 < pickle::kMaxDepth; ++i) deep = Value::list({deep});
  EXPECT_TRUE(again(deep).is(Kind::kList));
  for (int i = 0; i < 1000; ++i) deep = Value::list({deep});
  EXPECT_EQ(code_of([&] { written(deep); }), ErrorCode::kLimit);
}

TEST(PtWrite, RefusesPartsThatAnotherWayNestsTooDeeply) {
  const auto below = [](Value value) {
    for (int i = 0; i < 900; ++i) value = Value::list({value});
    return value;
  };
  const Value first = below(Value::list({Value::integer(1)}));
  const Value second = below(first);
  EXPECT_TRUE(again(Value::list({first, second})).is(Kind::kList));
  EXPECT_EQ(code_of([&] {
              written(Value::list({first, second, below(second)}));
            }),
            ErrorCode::kLimit)
      << "each is written where it comes first, which is not deep";
}

TEST(PtWrite, CompositeTensorsComeBack) {
  const Value indices = Value::tensor(numbered_tensor({2, 3}, DType::int64));
  const Value values = Value::tensor(numbered_tensor({3}, DType::float32));
  const Value size = Value::tuple({Value::integer(4), Value::integer(5)}, "torch.Size");
  const Value sparse = Value::object("torch.sparse_coo_tensor", {indices, values, size, Value::boolean(true)});
  const Value quantized =
      Value::object("torch.quantized", {Value::tensor(numbered_tensor({2, 3}, DType(DType::Code::kQInt8))),
                                        Value::string("per_tensor_affine"), Value::real(0.5), Value::integer(3),
                                        Value(), Value::tuple({Value::integer(2), Value::integer(3)})});
  const Value loaded = again(Value::list({sparse, quantized}));
  EXPECT_EQ(loaded[0].type_name(), "torch.sparse_coo_tensor");
  EXPECT_TRUE(Tensor::identical(loaded[0][0].as_tensor(), indices.as_tensor()));
  EXPECT_EQ(loaded[1].type_name(), "torch.quantized");
  EXPECT_TRUE(Tensor::identical(loaded[1][0].as_tensor(), quantized[0].as_tensor()));
  EXPECT_EQ(loaded[1][2].as_float(), 0.5);
}

TEST(PtWrite, AttributesAndFlagsComeBack) {
  const Value tag = Value::dict({{"tag", Value::tensor(numbered_tensor({2}, DType::int16))}});
  const Value complex = Value::tensor(Tensor::of<std::complex<float>>({{1, 2}, {3, 4}}));
  const Value meta = Value::object("torch.meta_tensor",
                                   {Value::dtype(DType::float32), Value::tuple({Value::integer(2)}),
                                    Value::tuple({Value::integer(1)}), Value::boolean(false)},
                                   tag);
  const Value loaded = again(Value::list(
      {meta, Value::object("torch.marked_tensor", {complex, Value::boolean(true), Value::boolean(false)}, tag),
       Value::object("torch.nn.parameter.Parameter", {meta, Value::boolean(true)}, tag), complex}));
  EXPECT_EQ(loaded[0].type_name(), "torch.meta_tensor");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(loaded[i].state());
    EXPECT_TRUE(Tensor::identical((*loaded[i].state())["tag"].as_tensor(), tag["tag"].as_tensor()));
  }
  EXPECT_TRUE(Tensor::identical(loaded[1].as_tensor(), Tensor::of<std::complex<float>>({{1, -2}, {3, -4}})));
  EXPECT_EQ(loaded[2].type_name(), "torch.nn.parameter.Parameter");
  EXPECT_TRUE(loaded[2][0].same_node(loaded[0]));
  EXPECT_TRUE(loaded[2][1].as_bool());
  EXPECT_TRUE(Tensor::identical(loaded[3].as_tensor(), complex.as_tensor()));
}

TEST(PtStorages, SpansThatTouchInOneBufferShareOneStorage) {
  const Tensor base = Tensor::zeros({100}, DType::int16);
  const std::vector<Tensor> tensors = {base.slice(0, 50, 60), base.slice(0, 0, 50), base.slice(0, 55, 100),
                                       Tensor::zeros({3})};
  const StoragePlan plan = plan_storages(tensors);
  ASSERT_EQ(plan.storages.size(), 2U);
  EXPECT_EQ(plan.tensors[0].storage, plan.tensors[1].storage);
  EXPECT_EQ(plan.tensors[0].offset, 50);
  EXPECT_EQ(plan.tensors[1].offset, 0);
  EXPECT_EQ(plan.tensors[2].offset, 55);
  EXPECT_EQ(plan.storages[plan.tensors[0].storage].bytes.nbytes(), 200U);
  EXPECT_FALSE(plan.storages[plan.tensors[0].storage].mixed);
}

TEST(PtStorages, StoragesOfOneBlockStayApart) {
  // Loading puts the storages of a file side by side into one block: that does not make them one.
  const Buffer block = Buffer::allocate(256);
  const std::vector<Tensor> tensors = {Tensor(block.part(0, 128), DType::float32, {32}),
                                       Tensor(block.part(128, 128), DType::float32, {32})};
  EXPECT_EQ(plan_storages(tensors).storages.size(), 2U);
}

}  // namespace
}  // namespace penstock::format
