#include "data/sample/expected_slots.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "data/support.h"
#include "penstock/load.h"
#include "penstock/ops.h"
#include "penstock/save.h"

namespace penstock {
namespace {

using test::TemporaryFolder;

constexpr std::int64_t kBatch = 4;
constexpr std::size_t kFiles = 12;
const Shape kShape{16, 64};

Value pair_of(const char* first, const Tensor& a, const char* second, const Tensor& b) {
  return Value::dict({{first, Value::tensor(a)}, {second, Value::tensor(b)}});
}
Tensor payload(std::size_t seed) { return test::numbered_tensor(kShape, DType::int32, seed); }
Tensor label(std::size_t seed) { return test::numbered_tensor(Shape{16}, DType::int32, seed); }

/// A batch as text; or the code of what is wrong with it.
std::string outcome(DataLoader& loader) {
  try {
    return test::bits_of(loader.next()->value);
  } catch (const Error& error) {
    return std::string(error_code_info(error.code()).name) + " at " + std::to_string(error.offset().value_or(0));
  }
}

/// The first batch of a loader foresees nothing: it is what every other one must be.
void expect_like_first_batches(const std::vector<std::string>& paths, const std::string& what) {
  const Dataset dataset = files(paths);
  DataLoader loader(dataset, {.batch_size = kBatch, .num_workers = 0});
  for (std::size_t first = 0; first < paths.size(); first += kBatch) {
    const auto begin = paths.begin() + static_cast<std::ptrdiff_t>(first);
    DataLoader alone(files(std::vector<std::string>(begin, begin + kBatch)), {.batch_size = kBatch, .num_workers = 0});
    EXPECT_EQ(outcome(loader), outcome(alone)) << what << ", batch from " << first;
  }
}

std::vector<std::string> write_files(const TemporaryFolder& folder, const std::string& extension,
                                     const std::function<Value(std::size_t)>& content) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kFiles; ++i) {
    paths.push_back(test::numbered_path(folder, static_cast<std::int64_t>(i), extension));
    save(content(i), paths.back(), {.sync = false});
  }
  return paths;
}

void flip(const std::string& path, std::uintmax_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

/// Fetches samples of the dataset whose tensor of that number is expected in `slots`.
std::vector<data::Sample> fetched_into(const Tensor& slots, const Dataset& dataset, std::uint32_t tensor,
                                       const std::vector<std::int64_t>& indices, data::Workspace& own) {
  std::vector<data::Sample> samples(indices.size());
  const data::ExpectedSlots expected = {.dataset = &dataset.impl(),
                                        .tensor = tensor,
                                        .bytes = slots[0].nbytes(),
                                        .first = const_cast<std::byte*>(slots.data())};
  // The first times teach how many tensors a part has, and what files hold.
  for (int round = 0; round < 3; ++round) {
    own.scratch.reset();
    dataset.impl().fetch(indices, own.work().with(expected), samples);
  }
  return samples;
}

const std::byte* at(const Tensor& slots, std::size_t i) { return slots.data() + i * slots[0].nbytes(); }

Tensor tensor_in(const Value& sample) {
  return sample.is(Value::Kind::kDict) ? sample["tensor"].as_tensor() : sample.as_tensor();
}

TEST(ExpectedSlots, PayloadIsReadIntoItsSlot) {
  for (const std::string extension : {".npy", ".pt", ".safetensors"}) {
    TemporaryFolder folder;
    test::write_tensors(folder, test::equal_tensors(3, kShape), extension);
    const Dataset dataset = files(folder.path().string());
    const Tensor slots = Tensor::zeros(Shape{3, 16, 64}, DType::int32);
    data::Workspace own;
    const std::vector<std::int64_t> indices = {2, 0, 1};
    const std::vector<data::Sample> samples = fetched_into(slots, dataset, 0, indices, own);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(samples[i].payloads[0].data(), at(slots, i)) << extension;
      EXPECT_TRUE(Tensor::identical(slots[static_cast<std::int64_t>(i)], tensor_in(dataset.get(indices[i]))))
          << extension;
    }
  }
}

TEST(ExpectedSlots, DatasetsThatGiveTheSamplesOfAnotherHandThemOn) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cat");
  const Dataset other = dataset(4, [](std::int64_t) { return Tensor::zeros(Shape{16, 64}, DType::int32); });
  for (int i = 0; i < 4; ++i) {
    save(full(Shape{16, 64}, i, DType::int32), folder / ("cat/" + std::to_string(i) + ".npy"));
  }
  const Dataset found = files(folder / "cat/*.npy");
  const Dataset labels = dataset(4, [](std::int64_t i) { return Value::integer(i); });
  struct Case {
    const char* name;
    Dataset dataset;
    std::uint32_t tensor;
  };
  const std::vector<Case> cases = {
      {"subset", subset(found, {3, 1, 2, 0}), 0},
      {"subset of a subset", subset(subset(found, {3, 1, 2, 0}), {1, 0, 3, 2}), 0},
      {"class folders", files(folder / "*/*.npy", {.class_folders = true}), 0},
      {"zip, in front", zip(found, labels), 0},
      {"zip, behind", zip(labels, found), 0},
      {"zip with the like", zip(found, files(folder / "cat/*.npy")), 1},
      {"zip with another tensor", zip(other, found), 1},
      {"zip, another's tensor", zip(other, found), 0},
      {"zip of a subset", subset(zip(labels, subset(found, {3, 1, 2, 0})), {1, 0, 3, 2}), 0},
      {"functions of batches", found.map([](const Value& batch) { return batch; }, {.batched = true}), 0},
      {"of functions", subset(other, {3, 1, 2, 0}), 0},
  };
  for (const Case& each : cases) {
    const Tensor slots = full(Shape{4, 16, 64}, -1, DType::int32);
    data::Workspace own;
    const std::vector<data::Sample> samples = fetched_into(slots, each.dataset, each.tensor, {0, 1, 2, 3}, own);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::span<const data::Payload> payloads(samples[static_cast<std::size_t>(i)].payloads,
                                                    samples[static_cast<std::size_t>(i)].layout->tensors.size());
      for (std::size_t t = 0; t < payloads.size(); ++t) {
        EXPECT_EQ(payloads[t].data() == at(slots, static_cast<std::size_t>(i)), t == each.tensor)
            << each.name << ", sample " << i;
      }
    }
  }
}

TEST(ExpectedSlots, IsNotForTheSamplesOfAnother) {
  TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(8, kShape), ".npy");
  const Dataset dataset = files(folder.path().string());
  std::vector<std::byte> slots(8 * 4096);
  data::Workspace own;
  const data::ExpectedSlots expected = {.dataset = &own, .tensor = 0, .bytes = 4096, .first = slots.data()};
  const std::vector<std::int64_t> indices = {0, 1, 2, 3};
  std::vector<data::Sample> samples(4);
  dataset.impl().fetch(indices, own.work().with(expected), samples);
  EXPECT_EQ(slots, std::vector<std::byte>(8 * 4096));
}

TEST(ExpectedSlots, EveryFileCanBeTheOddOne) {
  const auto truncate_to = [](double part) {
    return [part](const std::string& path) {
      const auto size = static_cast<double>(std::filesystem::file_size(path));
      std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size * part));
    };
  };
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> odd = {
      {"none", [](const std::string&) {}},
      {"cut in the payload", truncate_to(0.6)},
      {"cut in the header", truncate_to(0.01)},
      {"empty", truncate_to(0)},
      {"grown", [](const std::string& path) { std::ofstream(path, std::ios::app) << 'x'; }},
      {"grown beyond small", [](const std::string& path) { std::filesystem::resize_file(path, 300 << 10); }},
      {"a byte of payload changed", [](const std::string& path) { flip(path, std::filesystem::file_size(path) / 2); }},
      {"a byte of header changed", [](const std::string& path) { flip(path, 9); }},
      {"another dtype", [](const std::string& path) { save(test::numbered_tensor(kShape, DType::float32, 7), path); }},
      {"another shape",
       [](const std::string& path) {
         save(payload(7).reshape(Shape{64, 16}), path);
       }},
      {"transposed",
       [](const std::string& path) {
         save(payload(7).reshape(Shape{64, 16}).transpose(0, 1), path);
       }},
      {"longer",
       [](const std::string& path) {
         save(test::numbered_tensor(Shape{17, 64}, DType::int32, 7), path);
       }},
      {"gone", [](const std::string& path) { std::filesystem::remove(path); }},
  };
  for (const std::string extension : {".npy", ".pt", ".safetensors"}) {
    for (const auto& [what, spoil] : odd) {
      TemporaryFolder folder;
      const auto paths = write_files(folder, extension, [](std::size_t i) { return Value::tensor(payload(i)); });
      spoil(paths[kBatch + 2]);
      expect_like_first_batches(paths, what + " " + extension);
    }
  }
}

TEST(ExpectedSlots, OtherTensorsOfTheSampleAreCopied) {
  for (const std::string extension : {".pt", ".safetensors", ".npz"}) {
    TemporaryFolder folder;
    expect_like_first_batches(
        write_files(folder, extension, [](std::size_t i) { return pair_of("x", payload(i), "y", label(i)); }),
        extension);
  }
}

TEST(ExpectedSlots, PayloadElsewhereInAFileOfTheSameSize) {
  for (const std::string extension : {".pt", ".safetensors"}) {
    TemporaryFolder folder;
    const auto swapped = [](std::size_t i) {
      return i % 3 == 1 ? pair_of("y", label(i), "x", payload(i)) : pair_of("x", payload(i), "y", label(i));
    };
    const auto paths = write_files(folder, extension, swapped);
    DataLoader loader(files(paths, {.keys = {"x", "y"}}), {.batch_size = kBatch, .num_workers = 0});
    for (std::size_t first = 0; first < kFiles; first += kBatch) {
      const Batch batch = loader.next().value();
      for (std::size_t i = 0; i < kBatch; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        EXPECT_TRUE(Tensor::identical(batch["x"][at], payload(first + i))) << extension;
        EXPECT_TRUE(Tensor::identical(batch["y"][at], label(first + i))) << extension;
      }
    }
  }
}

TEST(ExpectedSlots, TensorsThatShareAStorage) {
  TemporaryFolder folder;
  expect_like_first_batches(write_files(folder, ".pt",
                                        [](std::size_t i) {
                                          const Tensor all = payload(i);
                                          return pair_of("all", all, "half", all.slice(0, 0, 8));
                                        }),
                            "shared");
}

TEST(ExpectedSlots, AShorterLastBatchAndRaggedOnesAreRight) {
  TemporaryFolder folder;
  std::vector<Tensor> tensors = test::equal_tensors(10, kShape);
  for (std::int64_t i = 0; i < 8; ++i) tensors.push_back(test::numbered_tensor(Shape{16 + i % 3, 64}, DType::int32, 5));
  test::write_tensors(folder, tensors, ".pt");
  const Dataset dataset = files(folder.path().string());
  DataLoader loader(dataset, {.batch_size = 5, .num_workers = 2, .collate = collate::pad()});
  for (std::int64_t first = 0; const auto batch = loader.next(); first += 5) {
    for (std::int64_t i = first; i < std::min<std::int64_t>(first + 5, dataset.size()); ++i) {
      const Tensor expected = tensors[static_cast<std::size_t>(i)];
      const Tensor values = batch->value.is(Value::Kind::kDict) ? (*batch)["values"] : batch->tensor();
      EXPECT_TRUE(Tensor::identical(values[i - first].slice(0, 0, expected.shape()[0]), expected)) << i;
    }
  }
}

}  // namespace
}  // namespace penstock
