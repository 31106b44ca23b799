#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "data/support.h"
#include "penstock/lengths.h"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Batches = std::vector<std::vector<std::int64_t>>;

Batches batches_of(const BatchSampler& sampler, std::uint64_t seed = 0, std::uint64_t epoch = 0) {
  const BatchOrder order = sampler.batches(seed, epoch);
  EXPECT_EQ(order.size(), sampler.size());
  Batches out;
  for (std::int64_t i = 0; i < order.size(); ++i) out.push_back(order[i]);
  return out;
}

std::vector<std::int64_t> sorted_indices(const Batches& batches) {
  std::vector<std::int64_t> out;
  for (const auto& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::int64_t> all_of(std::size_t count) {
  std::vector<std::int64_t> out(count);
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

TEST(LengthBuckets, BoundariesBelongToTheBucketBehind) {
  const std::vector<std::int64_t> lengths = {9, 10, 19, 20, 0, 11};
  const BatchSampler sampler =
      sampler::length_buckets(lengths, {.boundaries = {10, 20}, .batch_size = 2, .shuffle = false});
  EXPECT_THAT(batches_of(sampler), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 2), ElementsAre(5), ElementsAre(3)));
  const BatchSampler full =
      sampler::length_buckets(lengths, {.boundaries = {10, 20}, .batch_size = 2, .shuffle = false, .drop_last = true});
  EXPECT_THAT(batches_of(full), ElementsAre(ElementsAre(0, 4), ElementsAre(1, 2)));
}

TEST(LengthBuckets, SortedLengthsFillABatchAsFarAsItsLongestAllows) {
  const BatchSampler sampler = sampler::length_buckets({4, 1, 3, 1, 2, 0, 12}, {.max_tokens = 12, .shuffle = false});
  EXPECT_THAT(batches_of(sampler), ElementsAre(ElementsAre(5, 1, 3, 4), ElementsAre(2, 0), ElementsAre(6)));
}

TEST(LengthBuckets, EveryEpochHasEverySampleOnceInBatchesThatHaveRoom) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> lengths(random() % 60);
    for (auto& length : lengths) length = static_cast<std::int64_t>(random() % 30);
    LengthBucketOptions options;
    if (random() % 2 == 0) options.boundaries = {4, 9, 25};
    options.max_tokens = 29 + static_cast<std::int64_t>(random() % 60);
    if (random() % 2 == 0) options.batch_size = 3;
    options.shuffle = random() % 4 != 0;
    const BatchSampler sampler = sampler::length_buckets(lengths, options);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Batches batches = batches_of(sampler, 7, epoch);
      EXPECT_EQ(sorted_indices(batches), all_of(lengths.size()));
      EXPECT_EQ(batches, batches_of(sampler, 7, epoch));
      for (const auto& batch : batches) {
        std::int64_t longest = 0;
        std::set<std::ptrdiff_t> buckets;
        for (const std::int64_t index : batch) {
          const std::int64_t length = lengths[static_cast<std::size_t>(index)];
          longest = std::max(longest, length);
          buckets.insert(std::upper_bound(options.boundaries.begin(), options.boundaries.end(), length) -
                         options.boundaries.begin());
        }
        EXPECT_LE(longest * std::ssize(batch), *options.max_tokens);
        EXPECT_LE(std::ssize(batch), options.batch_size.value_or(1000));
        EXPECT_EQ(buckets.size(), 1u);
      }
    }
  }
}

TEST(LengthBuckets, EpochsAndSeedsDifferWithinBucketsAndAmongThem) {
  std::vector<std::int64_t> lengths(200);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<std::int64_t>(i % 20);
  const BatchSampler sampler = sampler::length_buckets(lengths, {.boundaries = {10}, .batch_size = 8});
  std::set<Batches> seen;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::uint64_t seed : {0, 100}) seen.insert(batches_of(sampler, seed, epoch));
  }
  EXPECT_EQ(seen.size(), 6u);
  std::vector<bool> is_long;
  for (const auto& batch : *seen.begin()) is_long.push_back(lengths[static_cast<std::size_t>(batch[0])] >= 10);
  EXPECT_FALSE(std::is_sorted(is_long.begin(), is_long.end())) << "batches are not shuffled";
}

TEST(LengthBuckets, RanksShareTheBatchesAndPadAlike) {
  std::vector<std::int64_t> lengths(103);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<std::int64_t>(i);
  for (const bool drop_last : {false, true}) {
    std::vector<Batches> ranks;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      ranks.push_back(batches_of(
          sampler::length_buckets(
              lengths, {.max_tokens = 210, .batch_size = 4, .drop_last = drop_last, .rank = rank, .num_replicas = 3}),
          1, 2));
      EXPECT_EQ(ranks.back().size(), ranks[0].size());
    }
    std::multiset<std::int64_t> seen;
    int apart = 0;
    for (std::size_t step = 0; step < ranks[0].size(); ++step) {
      for (const Batches& rank : ranks) {
        seen.insert(rank[step].begin(), rank[step].end());
        apart += std::abs(rank[step].back() - ranks[0][step].back()) > 16 ? 1 : 0;
      }
    }
    EXPECT_LE(apart, 2) << "but where the longest batch is followed by the shortest, lengths of a step are close";
    const std::set<std::int64_t> once(seen.begin(), seen.end());
    if (drop_last) {
      EXPECT_EQ(once.size(), seen.size()) << "no sample twice";
      EXPECT_GT(once.size(), 90u);
    } else {
      EXPECT_EQ(once.size(), lengths.size()) << "every sample";
    }
  }
}

TEST(LengthBuckets, OfFilesArePaddedLittleAndResumedExactly) {
  TemporaryFolder folder;
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < 40; ++i) tensors.push_back(Tensor::zeros(Shape{i * 7 % 40}, DType::uint8));
  test::write_tensors(folder, tensors, ".npy");
  const Dataset loose = files(folder.path().string());
  const LoaderOptions options{
      .batch_sampler = sampler::length_buckets(loose, {.boundaries = {10, 20, 30}, .batch_size = 4}),
      .num_workers = 2,
      .collate = collate::pad(),
      .seed = 3};
  DataLoader loader(loose, options);
  std::int64_t padded = 0;
  for (const Batch& batch : loader) padded += batch.tensor().numel();
  EXPECT_LT(padded, 40 * 39 / 2 * 3 / 2);
  loader.set_epoch(4);
  loader.next();
  const LoaderPosition position = loader.position();
  EXPECT_EQ(position.order, "length buckets");
  DataLoader again(loose, options);
  again.seek(position);
  EXPECT_EQ(test::rest_of_epoch(again), test::rest_of_epoch(loader));
}

TEST(LengthBuckets, SamplesThatAreTooLong) {
  const std::vector<std::int64_t> lengths = {3, 50, 4, 60};
  const auto error = test::error_of([&] { sampler::length_buckets(lengths, {.max_tokens = 20}); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), AllOf(HasSubstr("sample 1"), HasSubstr("50"), HasSubstr("too_long")));
  EXPECT_THAT(
      batches_of(sampler::length_buckets(lengths, {.max_tokens = 20, .shuffle = false, .too_long = TooLong::kAlone})),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(
      batches_of(sampler::length_buckets(lengths, {.max_tokens = 20, .shuffle = false, .too_long = TooLong::kSkip})),
      ElementsAre(ElementsAre(0, 2)));
  EXPECT_THAT(batches_of(sampler::length_buckets(
                  lengths, {.boundaries = {2}, .max_tokens = 20, .shuffle = false, .too_long = TooLong::kAlone})),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)))
      << "those that share a bucket with a long one are not alone";
  TemporaryFolder folder;
  save(Tensor::zeros(Shape{9}), folder / "a.npy", {.sync = false});
  const auto named = test::error_of([&] { sampler::length_buckets(files(folder / "*.npy"), {.max_tokens = 8}); });
  EXPECT_THAT(named->message(), HasSubstr("a.npy"));
}

TEST(LengthBuckets, RefuseBadOptions) {
  const std::vector<LengthBucketOptions> bad = {
      {},
      {.batch_size = 4},
      {.boundaries = {4}},
      {.boundaries = {4, 4}, .batch_size = 1},
      {.boundaries = {5, 4}, .batch_size = 1},
      {.boundaries = {-1, 4}, .batch_size = 1},
      {.boundaries = {0}, .batch_size = 1},
      {.max_tokens = 0},
      {.max_tokens = 8, .batch_size = 0},
      {.max_tokens = 8, .rank = 1},
      {.max_tokens = 8, .rank = -1, .num_replicas = 2},
      {.max_tokens = 8, .num_replicas = 0},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(test::code_of([&] {
                sampler::length_buckets(std::vector<std::int64_t>{1, 2}, bad[i]);
              }),
              ErrorCode::kInvalidArgument)
        << i;
  }
  EXPECT_EQ(test::code_of([] {
              sampler::length_buckets(std::vector<std::int64_t>{1, -2}, {.max_tokens = 8});
            }),
            ErrorCode::kInvalidArgument);
  const BatchSampler none = sampler::length_buckets(std::vector<std::int64_t>{}, {.max_tokens = 8});
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(batches_of(none).empty());
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sampler::length_buckets({huge, huge}, {.max_tokens = huge}).size(), 2);
}

TEST(LengthBuckets, AnotherNumberOfRanksIsAnotherOrder) {
  const auto of = [](std::int64_t ranks) {
    return sampler::length_buckets(std::vector<std::int64_t>{1, 2, 3, 4}, {.max_tokens = 8, .num_replicas = ranks});
  };
  EXPECT_EQ(of(1).kind(), "length buckets");
  EXPECT_EQ(of(2).kind(), "length buckets of 2 ranks");
  EXPECT_NE(of(2).kind(), of(3).kind());
  EXPECT_EQ(of(3).replicas(), 3);
}

}  // namespace
}  // namespace penstock
