#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "data/support.h"
#include "penstock/load.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<std::string> kExtensions = {".npy", ".pt", ".safetensors"};

/// What one sample is: its bits, or the code of its error.
std::string outcome(const std::function<Value()>& read) {
  try {
    return bits_of(read());
  } catch (const Error& error) {
    return std::string(error_code_info(error.code()).name);
  }
}

TEST(Files, AreTheirContent) {
  for (const std::string& extension : kExtensions) {
    TemporaryFolder folder;
    const std::vector<Tensor> tensors = test::equal_tensors(5, Shape{3, 2});
    test::write_tensors(folder, tensors, extension);
    const Dataset dataset = files(folder.path().string());
    ASSERT_EQ(dataset.size(), 5);
    DataLoader loader(dataset, {.batch_size = 5, .num_workers = 0});
    const Batch batch = loader.next().value();
    const Tensor all = extension == ".safetensors" ? batch["tensor"] : batch.tensor();
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::string path = test::numbered_path(folder, i, extension);
      EXPECT_EQ(dataset.describe(i), path);
      EXPECT_EQ(bits_of(dataset.get(i)), bits_of(load(path)));
      EXPECT_EQ(bits_of(Value::tensor(all[i])), bits_of(Value::tensor(tensors[static_cast<std::size_t>(i)])));
    }
  }
}

TEST(Files, KnownLayoutsAreNotParsed) {
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    TemporaryFolder folder;
    test::write_tensors(folder, test::equal_tensors(40, Shape{10}), extension);
    DataLoader loader(files(folder.path().string()), {.batch_size = 4, .num_workers = 0});
    while (loader.next()) {
    }
    EXPECT_EQ(loader.stats().files_opened, 40u) << extension;
    EXPECT_EQ(loader.stats().files_parsed, 1u) << extension;
  }
}

TEST(Files, RaggedLayoutsAreRememberedToo) {
  for (const std::string& extension : kExtensions) {
    TemporaryFolder folder;
    std::vector<Tensor> tensors;
    for (std::int64_t i = 0; i < 60; ++i)
      tensors.push_back(test::numbered_tensor(Shape{1 + i % 30}, DType::float32, 1));
    test::write_tensors(folder, tensors, extension);
    DataLoader loader(files(folder.path().string()),
                      {.batch_size = 30, .num_workers = 0, .collate = collate::ragged()});
    loader.next();
    const std::uint64_t before = loader.stats().files_parsed;
    loader.next();
    EXPECT_EQ(loader.stats().files_parsed, before) << extension;
  }
}

TEST(Files, OfDifferentFormatsMixInABatch) {
  TemporaryFolder folder;
  const Tensor tensor = test::numbered_tensor(Shape{3}, DType::float32);
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i) {
    paths.push_back(folder / (std::to_string(i) + kExtensions[static_cast<std::size_t>(i) % 2]));
    save(tensor, paths.back());
  }
  DataLoader loader(files(paths), {.batch_size = 12});
  const Tensor batch = loader.next()->tensor();
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(bits_of(Value::tensor(batch[i])), bits_of(Value::tensor(tensor)));
}

TEST(Files, SelectKeysInTheirOrder) {
  for (const std::string extension : {".pt", ".safetensors", ".npz"}) {
    TemporaryFolder folder;
    const Value value = test::dict_of({{"a", test::numbered_tensor(Shape{2}, DType::float32, 1)},
                                       {"b", test::numbered_tensor(Shape{3}, DType::int8, 2)},
                                       {"c", test::numbered_tensor(Shape{1}, DType::int64, 3)}});
    save(value, folder / ("x" + extension));
    const Value sample = files(folder.path().string(), {.keys = {"c", "a"}}).get(0);
    ASSERT_EQ(sample.size(), 2u) << extension;
    EXPECT_EQ(sample.item(0).first.as_string(), "c");
    EXPECT_EQ(bits_of(sample["c"]), bits_of(value["c"]));
    EXPECT_EQ(bits_of(sample["a"]), bits_of(value["a"]));
    const auto missing = test::error_of([&] { files(folder.path().string(), {.keys = {"bb"}}).get(0); });
    EXPECT_EQ(missing->code(), ErrorCode::kKeyNotFound);
    EXPECT_THAT(missing->what(), AllOf(HasSubstr("sample 0"), HasSubstr("x" + extension), HasSubstr("'b'")));
  }
  TemporaryFolder folder;
  save(Tensor::zeros(Shape{2}), folder / "x.npy");
  const auto no_dict = test::error_of([&] { files(folder.path().string(), {.keys = {"a"}}).get(0); });
  EXPECT_EQ(no_dict->code(), ErrorCode::kDTypeMismatch);
  EXPECT_THAT(no_dict->message(), HasSubstr("the file holds a tensor"));
}

TEST(Files, KeysAreThoseOfAPart) {
  TemporaryFolder folder;
  const auto at = [](std::int64_t number) { return Value::tensor(Tensor::of<std::int64_t>({number})); };
  save(Value::dict({{Value::string("a.b"), at(1)},
                    {Value::string("a"), Value::dict({{"b", at(2)}, {"c", Value::list({at(3), at(4)})}})},
                    {Value::integer(0), at(5)},
                    {Value::string("0"), at(6)},
                    {Value::integer(7), at(8)}}),
       folder / "x.pt");
  const std::vector<std::string> keys = {"a.b", "a.c.1", "[0]", "0", "7"};
  const Value sample = files(folder.path().string(), {.keys = keys}).get(0);
  const std::vector<std::int64_t> expected = {1, 4, 5, 6, 8};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(sample.item(i).second.as_tensor().item<std::int64_t>(), expected[i]) << keys[i];
  }
  EXPECT_EQ(sample.item(0).first.as_string(), "a.b");
  EXPECT_EQ(sample.item(2).first.as_int(), 0);
  EXPECT_EQ(sample.item(3).first.as_string(), "0");
  EXPECT_EQ(test::code_of([&] { files(folder.path().string(), {.keys = {"a.x"}}).get(0); }), ErrorCode::kKeyNotFound);
}

TEST(Files, KeysPassOverWhatCannotBeASample) {
  TemporaryFolder folder;
  save(Value::dict({{"x", Value::tensor(Tensor::zeros(Shape{2}))}, {"kind", Value::dtype(DType::float32)}}),
       folder / "x.pt");
  EXPECT_EQ(test::code_of([&] { files(folder.path().string()).get(0); }), ErrorCode::kUnsupported);
  EXPECT_EQ(files(folder.path().string(), {.keys = {"x"}}).get(0)["x"].as_tensor().shape(), Shape{2});
}

TEST(Files, LargeOnesAreReadStraightIntoTheBatch) {
  for (const std::string& extension :
       {std::string(".npy"), std::string(".pt"), std::string(".safetensors"), std::string(".npz")}) {
    TemporaryFolder folder;
    std::vector<std::string> expected;
    for (std::int64_t i = 0; i < 3; ++i) {
      const Value value =
          Value::tensor(test::numbered_tensor(Shape{300, 500}, DType::int32, static_cast<std::uint64_t>(i)));
      save(value.as_tensor(), test::numbered_path(folder, i, extension));
      expected.push_back(bits_of(load(test::numbered_path(folder, i, extension))));
    }
    const Dataset dataset = files(folder.path().string());
    const std::size_t open_before = test::open_files();
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_EQ(bits_of(dataset.get(i)), expected[static_cast<std::size_t>(i)]) << extension;
    EXPECT_EQ(test::open_files(), open_before);
    // Rows 40 to 49 of each are cut off: they are not read.
    DataLoader loader(dataset, {.batch_size = 3, .collate = collate::pad_to(40)});
    const Batch batch = loader.next().value();
    const Tensor values = batch.value.is(Value::Kind::kDict) ? batch.value.item(0).second.as_tensor() : batch.tensor();
    EXPECT_EQ(values.shape(), (Shape{3, 40, 500}));
    EXPECT_LT(loader.stats().read_bytes, 3u * 45 * 500 * 4 + 2 * 300'000) << extension;
  }
}

TEST(Files, LargeCompressedAndSwappedOnesToo) {
  TemporaryFolder folder;
  const Tensor tensor = test::numbered_tensor(Shape{400, 300}, DType::float32);
  save(test::dict_of({{"x", tensor}}), folder / "a.npz", {.compress = true});
  EXPECT_EQ(bits_of(files(folder / "a.npz").get(0)["x"]), bits_of(Value::tensor(tensor)));
  const std::string header = "{'descr': '>i4', 'fortran_order': True, 'shape': (400, 300), }\n";
  std::string npy =
      std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + std::string(1, '\0') + header;
  npy.resize(npy.size() + tensor.nbytes());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) npy[npy.size() - 1 - i] = static_cast<char>(i * 7);
  test::write_file(folder / "b.npy", npy);
  EXPECT_EQ(bits_of(files(folder / "b.npy").get(0)), bits_of(load(folder / "b.npy")));
}

TEST(Files, MoreThanAThreadMayHoldAreReadInTwoSteps) {
  TemporaryFolder folder;
  const std::vector<Tensor> tensors = test::equal_tensors(40, Shape{20'000});  // 80 kB each
  test::write_tensors(folder, tensors, ".npy");
  // The least that a thread may hold is 1 MiB: a dozen of these files.
  DataLoader loader(files(folder.path().string()), {.batch_size = 40, .memory_budget = 1});
  const Tensor batch = loader.next()->tensor();
  for (std::int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(bits_of(Value::tensor(batch[i])), bits_of(Value::tensor(tensors[static_cast<std::size_t>(i)])));
  }
}

TEST(Files, SayWhatIsWrong) {
  TemporaryFolder folder;
  test::write_file(folder / "text.pt", "this is no tensor file, not at all");
  test::write_file(folder / "empty.pt", "");
  std::filesystem::create_directory(folder / "folder.pt");
  ASSERT_EQ(::mkfifo((folder / "pipe.pt").c_str(), 0600), 0);
  const Dataset dataset = files(std::vector<std::string>{folder / "text.pt", folder / "empty.pt", folder / "folder.pt",
                                                         folder / "pipe.pt", folder / "missing.pt"});
  const std::vector<ErrorCode> codes = {ErrorCode::kUnknownFormat, ErrorCode::kUnknownFormat, ErrorCode::kIsDirectory,
                                        ErrorCode::kUnsupported, ErrorCode::kNotFound};
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const auto error = test::error_of([&] { dataset.get(i); });
    EXPECT_EQ(error->code(), codes[static_cast<std::size_t>(i)]) << dataset.describe(i);
    EXPECT_THAT(error->what(), AllOf(HasSubstr("sample " + std::to_string(i)), HasSubstr(dataset.describe(i))));
  }
}

// The quick way to recognise a layout must accept, refuse and deliver exactly what reading a file alone does.
TEST(Files, TheQuickWayIsTheSlowWay) {
  std::mt19937 random(23);
  for (const std::string& extension : kExtensions) {
    const TemporaryFolder folder(test::quick_folder());
    test::write_tensors(folder, test::equal_tensors(3, Shape{5, 3}), extension);
    const std::string good = test::read_file(test::numbered_path(folder, 2, extension));
    const std::string path = folder / ("mutant" + extension);
    const Dataset dataset =
        files({test::numbered_path(folder, 0, extension), test::numbered_path(folder, 1, extension), path});
    std::size_t refused = 0;
    for (int round = 0; round < 500; ++round) {
      std::string bytes = good;
      switch (random() % 4) {
        case 0:
          bytes.resize(random() % bytes.size());
          break;
        case 1:
          bytes.append(1 + random() % 100, static_cast<char>(random()));
          break;
        default:
          for (std::size_t flips = 1 + random() % 3; flips > 0; --flips) {
            bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
          }
      }
      test::write_file(path, bytes);
      const std::string slow = outcome([&] { return load(path); });
      // The first two samples teach the layout.
      DataLoader loader(dataset, {.batch_sampler = sampler::batches({{0}, {1}, {2}}), .collate = collate::ragged()});
      loader.next();
      loader.next();
      const std::string quick = outcome([&]() -> Value {
        const Value value = loader.next()->value;
        if (value.is(Value::Kind::kList)) return value[0];
        std::vector<Value::Item> items;
        for (std::size_t i = 0; i < value.size(); ++i) items.emplace_back(value.item(i).first, value.item(i).second[0]);
        return Value::dict(std::move(items));
      });
      ASSERT_EQ(quick, slow) << extension << " round " << round;
      refused += slow.size() < 40 ? 1 : 0;
    }
    EXPECT_GT(refused, 100u) << extension;
  }
}

TEST(Files, DamagedPayloadIsFoundWhereAChecksumIsRecorded) {
  TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(4, Shape{600}), ".pt");
  const std::string path = test::numbered_path(folder, 3, ".pt");
  std::string bytes = test::read_file(path);
  const Tensor tensor = load_tensor(path);
  const std::string payload(reinterpret_cast<const char*>(tensor.data()), 32);
  const std::size_t at = bytes.find(payload);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 5] ^= 1;
  test::write_file(path, bytes);
  const Dataset dataset = files(folder.path().string());
  DataLoader strict(dataset, {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(strict.next());
  const auto error = test::error_of([&] { strict.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kChecksum);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("sample 3"), HasSubstr("0003.pt")));
  DataLoader lax(dataset, {.verify = false});
  EXPECT_EQ(test::rest_of_epoch(lax).size(), 4u);
}

TEST(Files, MayBeReplacedBetweenEpochs) {
  for (const std::string& extension : kExtensions) {
    TemporaryFolder folder;
    test::write_tensors(folder, test::equal_tensors(3, Shape{50}), extension);
    DataLoader loader(files(folder.path().string()), {.num_workers = 2, .collate = collate::ragged()});
    test::rest_of_epoch(loader);
    const std::string path = test::numbered_path(folder, 1, extension);
    const std::vector<std::string> contents = [&] {
      std::vector<std::string> out;
      save(test::numbered_tensor(Shape{70}, DType::int32, 9), path);  // grown
      out.push_back(test::read_file(path));
      save(test::numbered_tensor(Shape{20}, DType::int32, 9), path);  // shrunk
      out.push_back(test::read_file(path));
      save(test::numbered_tensor(Shape{50}, DType::int32, 9), path);  // same layout
      out.push_back(test::read_file(path));
      save(test::numbered_tensor(Shape{25}, DType::int64, 9), path);  // same size, another type
      out.push_back(test::read_file(path));
      return out;
    }();
    for (const std::string& content : contents) {
      test::write_file(path, content);
      const std::vector<std::string> epoch = test::rest_of_epoch(loader);
      ASSERT_EQ(epoch.size(), 3u);
      DataLoader fresh(files(folder.path().string()), {.collate = collate::ragged()});
      EXPECT_EQ(epoch, test::rest_of_epoch(fresh)) << extension;
    }
    std::filesystem::remove(path);
    loader.next();
    EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kNotFound);
    EXPECT_TRUE(loader.next());
  }
}

TEST(Files, ALargeFileThatChangesUnderwayIsNoticed) {
  TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  const std::string other = folder / "b.npy";
  save(test::numbered_tensor(Shape{200'000}, DType::int32, 1), path);
  save(test::numbered_tensor(Shape{200'000}, DType::int32, 2), other);
  const Dataset changing = test::watched(rows(test::numbered_rows(1, 1)), [&](std::int64_t, const data::CallContext&) {
    test::write_file(path, test::read_file(other));
  });
  // The second part of the tuple is fetched after the first, and before any payload is read.
  DataLoader loader(zip(files(path), changing), {});
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kChanged);
}

TEST(Files, LeakNoDescriptors) {
  TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(30, Shape{100}), ".npy");
  test::write_file(folder / "bad.npy", "bad");
  save(Tensor::zeros(Shape{300'000}), folder / "large.npy");
  const std::size_t before = test::open_files();
  {
    DataLoader loader(files(folder.path().string()), {.num_workers = 3, .collate = collate::ragged()});
    for (int i = 0; i < 100; ++i) {
      try {
        loader.next();
      } catch (const Error&) {
      }
      EXPECT_LE(test::open_files(), before + 1 + 3 + 1);  // the folder, one for each worker, the listing itself
    }
  }
  EXPECT_EQ(test::open_files(), before);
}

}  // namespace
}  // namespace penstock
