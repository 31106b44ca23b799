// Files over 256 KB: whatever was assumed of them, each sample is what its file alone gives.

#include "data/files/large_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/files/twins.h"
#include "data/support.h"
#include "penstock/load.h"

namespace penstock {
namespace {

using test::bits_of;
using test::TemporaryFolder;

constexpr std::int64_t kElements = 80'000;  // 320 KB

Value tensor_of(std::int64_t elements, std::uint64_t seed, const DType& dtype = DType::int32) {
  return Value::tensor(test::numbered_tensor(Shape{elements}, dtype, seed));
}
Value pair_of(std::uint64_t seed) {
  return Value::dict({{"x", tensor_of(kElements, seed)}, {"y", tensor_of(kElements + 16, seed + 100)}});
}

/// Every sample of a batch of a rule that keeps them apart.
std::vector<std::string> samples_of(DataLoader& loader) {
  std::vector<std::string> out;
  while (const auto batch = loader.next()) {
    for (std::size_t i = 0; i < batch->indices.size(); ++i) out.push_back(bits_of(batch->value[i]));
  }
  return out;
}

class LargeFiles : public ::testing::Test {
 protected:
  void write(const Value& value, const std::string& extension) {
    paths_.push_back(test::numbered_path(folder_, std::ssize(paths_), extension));
    save(value, paths_.back(), {.sync = false});
  }
  DataLoader loader(std::size_t workers, std::vector<std::string> keys = {}, std::int64_t batch_size = 4) const {
    return {files(paths_, {.keys = std::move(keys)}),
            {.batch_size = batch_size, .num_workers = workers, .collate = collate::samples()}};
  }
  std::vector<std::string> loaded() const {
    std::vector<std::string> out;
    for (const std::string& path : paths_) out.push_back(bits_of(load(path)));
    return out;
  }
  void expect_each_is_its_file(DataLoader& loader) const { EXPECT_EQ(samples_of(loader), loaded()); }

  TemporaryFolder folder_{test::quick_folder()};
  std::vector<std::string> paths_;
};

TEST_F(LargeFiles, OfAKnownLayoutAreOpenedOnceAndNotParsed) {
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    paths_.clear();
    for (std::uint64_t i = 0; i < 24; ++i) write(extension == ".npy" ? tensor_of(kElements, i) : pair_of(i), extension);
    DataLoader epochs = loader(0);
    for (int epoch = 0; epoch < 2; ++epoch) expect_each_is_its_file(epochs);
    EXPECT_EQ(epochs.stats().files_parsed, 1U) << extension;
    EXPECT_EQ(epochs.stats().files_opened, 48U) << extension;
  }
}

TEST_F(LargeFiles, ArePartedAmongWorkers) {
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    paths_.clear();
    for (std::uint64_t i = 0; i < 16; ++i) write(extension == ".npy" ? tensor_of(kElements, i) : pair_of(i), extension);
    const std::vector<std::string> expected = loaded();
    for (const std::size_t workers : {1U, 2U, 5U}) {
      DataLoader epochs = loader(workers, {}, 8);
      for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(samples_of(epochs), expected) << extension;
      EXPECT_LE(epochs.stats().files_parsed, workers) << extension;
      EXPECT_EQ(epochs.stats().files_opened, 32U) << extension;
    }
  }
}

TEST_F(LargeFiles, GiveSelectedKeysByTheirBytesAlone) {
  for (const std::string extension : {".pt", ".safetensors", ".npz"}) {
    paths_.clear();
    for (std::uint64_t i = 0; i < 12; ++i) write(pair_of(i), extension);
    DataLoader epochs = loader(0, {"y"});
    samples_of(epochs);
    const std::uint64_t before = epochs.stats().read_bytes;
    const std::vector<std::string> samples = samples_of(epochs);
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      EXPECT_EQ(samples[i], bits_of(Value::dict({{"y", load(paths_[i])["y"]}}))) << extension;
    }
    const std::uint64_t wanted = 12 * (kElements + 16) * 4;
    EXPECT_LT(epochs.stats().read_bytes - before, wanted + 12 * 4096) << extension;
    EXPECT_EQ(epochs.stats().files_parsed, 1U) << extension;
  }
}

TEST_F(LargeFiles, MixWithSmallOnes) {
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    paths_.clear();
    for (std::uint64_t i = 0; i < 24; ++i) write(tensor_of(i % 2 == 0 ? 4096 : 1 << 18, i), extension);
    const std::vector<std::string> expected = loaded();
    for (const std::size_t workers : {0U, 2U}) {
      DataLoader epochs = loader(workers);
      for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(samples_of(epochs), expected) << extension;
      EXPECT_LE(epochs.stats().files_parsed, 2 * std::max<std::size_t>(workers, 1)) << extension;
    }
  }
}

TEST_F(LargeFiles, OfOneSizeMayHaveAnotherLayoutEach) {
  const std::vector<DType> dtypes = {DType::int32, DType::float32, DType::uint32};
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    paths_.clear();
    for (std::uint64_t i = 0; i < 30; ++i) write(tensor_of(kElements, i, dtypes[i % 3]), extension);
    const std::vector<std::string> expected = loaded();
    for (const std::size_t workers : {0U, 3U}) {
      DataLoader epochs = loader(workers);
      for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(samples_of(epochs), expected) << extension;
      EXPECT_LE(epochs.stats().files_parsed, 3 * std::max<std::size_t>(workers, 1) + workers) << extension;
    }
  }
}

TEST_F(LargeFiles, KeepTheirOwnLabels) {
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto label = Value::integer(static_cast<std::int64_t>(i % 7 == 6 ? 3 : i / 10));
    write(Value::dict({{"x", tensor_of(kElements, i)}, {"label", label}}), ".pt");
  }
  DataLoader epochs = loader(0);
  for (int epoch = 0; epoch < 2; ++epoch) expect_each_is_its_file(epochs);
  EXPECT_EQ(epochs.stats().files_parsed, 4U);
  // A sample without tensors has no payload whose reading would show that it is another one.
  DataLoader labels = loader(0, {"label"});
  const std::vector<std::string> samples = samples_of(labels);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    EXPECT_EQ(samples[i], bits_of(Value::dict({{"label", load(paths_[i])["label"]}})));
  }
}

TEST_F(LargeFiles, OfEqualHeadAndAnotherSizeAreLookedAtAnew) {
  for (const std::string extension : {".npy", ".pt", ".safetensors", ".npz"}) {
    for (const std::int64_t more : {-1000, -1, 1, 1000}) {
      paths_.clear();
      for (std::uint64_t i = 0; i < 8; ++i) write(tensor_of(kElements, i), extension);
      std::filesystem::resize_file(
          paths_[6],
          static_cast<std::uintmax_t>(static_cast<std::int64_t>(std::filesystem::file_size(paths_[6])) + more));
      DataLoader epoch = loader(0, {}, 1);
      for (int i = 0; i < 6; ++i) ASSERT_TRUE(epoch.next());
      DataLoader fresh(files(paths_), {.batch_sampler = sampler::batches({{6}}), .collate = collate::samples()});
      const auto next_of = [](DataLoader& loader) { return test::outcome_of([&] { return loader.next()->value; }); };
      EXPECT_EQ(next_of(epoch), next_of(fresh)) << extension << " " << more;
      EXPECT_TRUE(epoch.next());
    }
  }
}

TEST_F(LargeFiles, FirstErrorOfABatchIsThatOfTheFirstSample) {
  for (std::uint64_t i = 0; i < 24; ++i) write(pair_of(i), ".pt");
  const auto damage = [&](std::size_t file) {
    std::string bytes = test::read_file(paths_[file]);
    bytes[bytes.size() / 2] ^= 1;
    test::write_file(paths_[file], bytes);
  };
  for (const std::size_t file : {17U, 20U, 22U}) damage(file);
  for (const std::size_t workers : {0U, 4U}) {
    for (int round = 0; round < 5; ++round) {
      DataLoader epoch = loader(workers, {}, 8);
      EXPECT_TRUE(epoch.next());
      EXPECT_TRUE(epoch.next());
      const auto error = test::error_of([&] { epoch.next(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::kChecksum);
      EXPECT_EQ(error->path(), paths_[17]);
    }
  }
}

TEST_F(LargeFiles, ComeOneByOneWhereDescriptorsAreFew) {
  for (std::uint64_t i = 0; i < 40; ++i) write(tensor_of(kElements, i), ".npy");
  const std::vector<std::string> expected = loaded();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(test::open_files() + 30);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (const std::size_t workers : {0U, 2U}) {
    DataLoader epochs = loader(workers, {}, 40);
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(samples_of(epochs), expected);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(SparseImage, HasWhatIsWrittenForThisFileAndZerosElse) {
  data::SparseImage image;
  const std::uint64_t size = 10'000'000;
  const std::vector<data::FileRange> ends = {{0, 100}, {size - 50, size}};
  std::byte* const first = image.prepare(size, ends);
  std::fill_n(first, 100, std::byte{1});
  std::fill_n(first + size - 50, 50, std::byte{2});
  EXPECT_EQ(image.prepare(size, ends)[99], std::byte{1}) << "about to be written again";
  const std::vector<data::FileRange> other = {{10, 20}};
  const std::byte* const second = image.prepare(size, other);
  EXPECT_EQ(std::count(second, second + size, std::byte{}), size);
  EXPECT_EQ(image.prepare(~std::uint64_t{0}, other), nullptr);
}

}  // namespace
}  // namespace penstock
