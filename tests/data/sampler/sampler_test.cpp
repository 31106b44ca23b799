#include "penstock/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "data/sampler/golden.h"
#include "data/sampler/torch_random.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Indices = std::vector<std::int64_t>;
using test::error_of;

Indices iota(std::int64_t n) {
  Indices out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  return out;
}

TEST(Random, RandpermIsTorchs) {
  for (const golden::Randperm& c : golden::kRandpermCases) {
    data::Generator generator(c.seed);
    Indices order(static_cast<std::size_t>(c.n));
    data::randperm(std::span(order), generator);
    EXPECT_EQ(order, c.order) << c.seed << " over " << c.n;
  }
}

TEST(Random, RandintIsTorchsOnBothSidesOfEveryRange) {
  for (const golden::Randint& c : golden::kRandintCases) {
    data::Generator generator(c.seed);
    Indices values(c.values.size());
    data::randint(c.high, std::span(values), generator);
    EXPECT_EQ(values, c.values) << c.high;
  }
}

/// What `fill` makes in 4 bytes an index is what it makes in 8.
template <class Fill>
void expect_same_in_both_widths(std::size_t size, Fill fill) {
  Indices wide(size);
  std::vector<std::uint32_t> narrow(size);
  data::Generator one(7);
  data::Generator other(7);
  fill(std::span(wide), one);
  fill(std::span(narrow), other);
  EXPECT_EQ(wide, Indices(narrow.begin(), narrow.end()));
  EXPECT_EQ(one.random(), other.random());
}

TEST(Random, TheWidthOfIndicesChangesNothing) {
  for (const std::size_t size : {0, 1, 2, 63, 64, 65, 1000}) {
    expect_same_in_both_widths(size, [](auto out, data::Generator& g) { data::randperm(out, g); });
    expect_same_in_both_widths(size, [](auto out, data::Generator& g) { data::randperm_inside_out(out, g); });
    for (const std::int64_t high : {1, 1000, 1 << 30}) {
      expect_same_in_both_widths(size, [high](auto out, data::Generator& g) { data::randint(high, out, g); });
    }
  }
}

TEST(Random, InsideOutIsAPermutationThatUsesTheWholeGenerator) {
  data::Generator generator(3);
  Indices order(1000);
  data::randperm_inside_out(std::span(order), generator);
  data::Generator other(3);
  for (int i = 0; i < 1000; ++i) other.random64();
  EXPECT_EQ(generator.random(), other.random());
  EXPECT_NE(order, iota(1000));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, iota(1000));
}

TEST(Samplers, SequentialCounts) {
  EXPECT_THAT(sampler::sequential(3).order(1, 2).to_vector(), ElementsAre(0, 1, 2));
  EXPECT_THAT(sampler::sequential(0).order(0, 0).to_vector(), IsEmpty());
  EXPECT_EQ(error_of([] { sampler::sequential(-1); })->code(), ErrorCode::kInvalidArgument);
}

TEST(Samplers, RandomIsTorchsRandomSampler) {
  for (const golden::Random& c : golden::kRandomCases) {
    RandomOptions options{.replacement = c.replacement};
    if (c.samples >= 0) options.num_samples = c.samples;
    const Sampler sampler = sampler::random(c.n, options);
    EXPECT_EQ(sampler.order(c.seed, 0).to_vector(), c.order);
    EXPECT_EQ(sampler.size(), static_cast<std::int64_t>(c.order.size()));
  }
}

TEST(Samplers, SeedAndEpochAddUp) {
  const Sampler sampler = sampler::random(100);
  EXPECT_EQ(sampler.order(5, 2).to_vector(), sampler.order(7, 0).to_vector());
  EXPECT_NE(sampler.order(5, 2).to_vector(), sampler.order(5, 3).to_vector());
  EXPECT_EQ(sampler.order(~std::uint64_t{0}, 1).to_vector(), sampler.order(0, 0).to_vector());
}

TEST(Samplers, CompactRandomGivesEachOnceHoweverItIsAsked) {
  for (const std::int64_t size : {1, 2, 7, 1000}) {
    const Sampler compact = sampler::random(size, {.compact = true});
    const Order order = compact.order(5, 2);
    std::vector<std::int64_t> all = order.to_vector();
    for (std::int64_t position = 0; position < size; position += 3) {
      std::vector<std::int64_t> part(static_cast<std::size_t>(std::min<std::int64_t>(5, size - position)));
      order.copy(position, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + position)) << size << " " << position;
    }
    if (size > 2) {
      EXPECT_NE(compact.order(5, 3).to_vector(), all);
      EXPECT_NE(compact.order(6, 2).to_vector(), all);
    }
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
  }
  const std::vector<std::int64_t> twice =
      sampler::random(10, {.num_samples = 25, .compact = true}).order(1, 1).to_vector();
  for (const std::size_t first : {0U, 10U}) {
    std::vector<std::int64_t> pass(twice.begin() + static_cast<std::ptrdiff_t>(first),
                                   twice.begin() + static_cast<std::ptrdiff_t>(first) + 10);
    std::sort(pass.begin(), pass.end());
    EXPECT_EQ(pass, sampler::sequential(10).order(0, 0).to_vector());
  }
  EXPECT_NE(std::vector(twice.begin(), twice.begin() + 10), std::vector(twice.begin() + 10, twice.begin() + 20));
  EXPECT_EQ(sampler::random(std::int64_t{1} << 62, {.compact = true}).order(1, 1).size(), std::int64_t{1} << 62);
  EXPECT_EQ(sampler::random(0, {.compact = true}).order(1, 1).size(), 0);
  EXPECT_EQ(error_of([] { sampler::random(9, {.replacement = true, .compact = true}); })->code(),
            ErrorCode::kInvalidArgument);
}

TEST(Samplers, RandomRefusesWhatItCannotDraw) {
  EXPECT_EQ(error_of([] { sampler::random(-1); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::random(5, {.num_samples = -2}); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::random(0, {.num_samples = 1}); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(sampler::random(0).order(0, 0).to_vector(), IsEmpty());
  EXPECT_THAT(sampler::random(0, {.replacement = true}).order(0, 0).to_vector(), IsEmpty());
}

TEST(Samplers, SubsetKeepsOrPermutesItsIndices) {
  EXPECT_EQ(sampler::subset(golden::kSubset).order(4, 0).to_vector(), golden::kSubset);
  EXPECT_EQ(sampler::subset(golden::kSubset, true).order(4, 0).to_vector(), golden::kSubsetOrder);
  EXPECT_THAT(sampler::subset(Indices{}, true).order(4, 0).to_vector(), IsEmpty());
}

TEST(Samplers, WeightedDrawsInProportion) {
  const std::vector<double> weights = {1, 0, 3, 0, 0, 4, 0};
  const std::int64_t draws = 80'000;
  const Indices order = sampler::weighted(weights, draws).order(1, 0).to_vector();
  ASSERT_EQ(order.size(), static_cast<std::size_t>(draws));
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t index : order) ++counts[index];
  ASSERT_EQ(counts.size(), 3u);
  // Five standard deviations.
  EXPECT_NEAR(static_cast<double>(counts[0]), 10'000, 500);
  EXPECT_NEAR(static_cast<double>(counts[2]), 30'000, 700);
  EXPECT_NEAR(static_cast<double>(counts[5]), 40'000, 710);
}

TEST(Samplers, WeightedWithReplacementIsTheSearchInTheCumulativeSum) {
  data::Generator pick(99);
  for (const std::size_t n : {1u, 2u, 3u, 17u, 256u, 1000u}) {
    std::vector<double> weights(n);
    for (double& w : weights) w = pick.uniform() < 0.5 ? 0.0 : std::pow(pick.uniform(), 20.0);
    weights[n / 2] = 1;
    std::vector<double> cumulative(n);
    std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
    const double largest = *std::max_element(weights.begin(), weights.end());
    ASSERT_EQ(largest, 1.0);  // so that the sampler's scaling changes nothing
    data::Generator generator(5);
    for (const std::int64_t index : sampler::weighted(weights, 2000).order(5, 0).to_vector()) {
      const double at = generator.uniform() * cumulative.back();
      EXPECT_EQ(index, std::upper_bound(cumulative.begin(), cumulative.end(), at) - cumulative.begin());
      EXPECT_GT(weights[static_cast<std::size_t>(index)], 0);
    }
  }
}

TEST(Samplers, WeightedTakesExtremeWeights) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  std::set<std::int64_t> seen;
  for (const std::int64_t index : sampler::weighted({huge, 0, huge, huge}, 1000).order(0, 0).to_vector())
    seen.insert(index);
  EXPECT_THAT(seen, ElementsAre(0, 2, 3));
  for (const std::int64_t index : sampler::weighted({0, tiny, 0}, 100).order(0, 0).to_vector()) EXPECT_EQ(index, 1);
  EXPECT_THAT(sampler::weighted({0, tiny, 0}, 1, false).order(0, 0).to_vector(), ElementsAre(1));
}

TEST(Samplers, WeightedWithoutReplacementTakesEachOnce) {
  const std::vector<double> weights = {1, 0, 2, 3, 0, 4};
  Indices order = sampler::weighted(weights, 4, false).order(3, 1).to_vector();
  std::sort(order.begin(), order.end());
  EXPECT_THAT(order, ElementsAre(0, 2, 3, 5));
  // The first one drawn has the same distribution as with replacement.
  std::map<std::int64_t, int> first;
  const Sampler sampler = sampler::weighted(weights, 1, false);
  for (std::uint64_t epoch = 0; epoch < 20'000; ++epoch) ++first[sampler.order(0, epoch).to_vector()[0]];
  EXPECT_NEAR(first[0], 2'000, 220);
  EXPECT_NEAR(first[5], 8'000, 350);
}

TEST(Samplers, WeightedRefusesWeightsThatMeanNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_of([&] { sampler::weighted({1, nan}, 1); })->message(), HasSubstr("weight 1 is nan"));
  EXPECT_EQ(error_of([] { sampler::weighted({1, -1}, 1); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] {
              sampler::weighted({1, std::numeric_limits<double>::infinity()}, 1);
            })->code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::weighted({0, 0}, 1); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::weighted({}, 1); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::weighted({1}, -1); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::weighted({1, 0}, 2, false); })->code(), ErrorCode::kInvalidArgument);
}

/// The part of each index, of `nodes` parts.
Indices parts_of(const Indices& indices, std::int64_t size, std::int64_t nodes) {
  Indices out;
  for (const std::int64_t index : indices) {
    std::int64_t part = 0;
    while (index >= size / nodes * (part + 1) + std::min(part + 1, size % nodes)) ++part;
    out.push_back(part);
  }
  return out;
}

TEST(Samplers, NodeLocalGivesEachSampleOnce) {
  for (const std::int64_t size : {0, 1, 2, 7, 64, 1001}) {
    for (const std::int64_t nodes : {1, 2, 3, 8, 100}) {
      for (const std::int64_t ranks : {1, 2, 5, 4000}) {
        for (const bool shuffle : {false, true}) {
          const Sampler sampler =
              sampler::node_local(size, {.nodes = nodes, .ranks_per_node = ranks, .shuffle = shuffle});
          Indices order = sampler.order(1, 2).to_vector();
          EXPECT_EQ(sampler.size(), size);
          std::sort(order.begin(), order.end());
          EXPECT_EQ(order, iota(size)) << size << " over " << nodes << " nodes of " << ranks;
        }
      }
    }
  }
}

TEST(Samplers, NodeLocalKeepsNodesToTheirParts) {
  constexpr std::int64_t kSize = 8 * 3 * 40;
  const Sampler sampler = sampler::node_local(kSize, {.nodes = 8, .ranks_per_node = 3});
  for (const std::int64_t nodes : {1, 2, 4, 8}) {
    for (std::int64_t rank = 0; rank < nodes * 3; ++rank) {
      std::set<std::int64_t> seen;
      for (const std::uint64_t epoch : {0, 1, 2}) {
        const DistributedOptions options{.rank = rank, .num_replicas = nodes * 3};
        for (const std::int64_t part :
             parts_of(sampler::distributed(sampler, options).order(7, epoch).to_vector(), kSize, 8)) {
          seen.insert(part);
        }
      }
      std::set<std::int64_t> own;
      for (std::int64_t part = rank / 3; part < 8; part += nodes) own.insert(part);
      EXPECT_EQ(seen, own) << "rank " << rank << " on " << nodes << " nodes";
    }
  }
}

TEST(Samplers, NodeLocalShufflesEachPartAnew) {
  const Sampler sampler = sampler::node_local(100, {.nodes = 4});
  EXPECT_NE(sampler.order(1, 0).to_vector(), sampler.order(1, 1).to_vector());
  EXPECT_EQ(sampler.order(1, 1).to_vector(), sampler.order(1, 1).to_vector());
  EXPECT_THAT(sampler::node_local(7, {.nodes = 3, .shuffle = false}).order(9, 9).to_vector(),
              ElementsAre(0, 3, 5, 1, 4, 6, 2));
}

TEST(Samplers, NodeLocalRefusesNoNodes) {
  for (const NodeLocalOptions& options : {NodeLocalOptions{.nodes = 0}, NodeLocalOptions{.ranks_per_node = 0}}) {
    EXPECT_EQ(error_of([&] { sampler::node_local(5, options); })->code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(error_of([] { sampler::node_local(-1, {}); })->code(), ErrorCode::kInvalidArgument);
}

TEST(Samplers, DistributedIsTorchs) {
  for (const golden::Distributed& c : golden::kDistributedCases) {
    const Sampler sampler = sampler::distributed(c.n, {.rank = c.rank,
                                                       .num_replicas = c.replicas,
                                                       .shuffle = c.shuffle,
                                                       .remainder = c.drop ? Remainder::kDrop : Remainder::kPad});
    EXPECT_EQ(sampler.order(c.seed, c.epoch).to_vector(), c.order) << c.n << " over " << c.replicas;
    EXPECT_EQ(sampler.size(), static_cast<std::int64_t>(c.order.size()));
  }
}

TEST(Samplers, DistributedSplitsAnotherSampler) {
  const Sampler whole = sampler::weighted({1, 2, 3}, 11);
  Indices joined(12);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const Indices part = sampler::distributed(whole, {.rank = rank, .num_replicas = 4}).order(2, 3).to_vector();
    ASSERT_EQ(part.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) joined[i * 4 + static_cast<std::size_t>(rank)] = part[i];
  }
  Indices expected = whole.order(2, 3).to_vector();
  expected.push_back(expected[0]);
  EXPECT_EQ(joined, expected);
}

TEST(Samplers, DistributedTakesNoMemoryForWhatIsComputed) {
  constexpr std::int64_t kMany = std::int64_t{1} << 60;
  const Sampler whole = sampler::random(kMany, {.compact = true});
  const Order part = sampler::distributed(whole, {.rank = 2, .num_replicas = 3}).order(5, 1);
  const Order all = whole.order(5, 1);
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{7}, part.size() - 2}) {
    EXPECT_EQ(part[at], all[at * 3 + 2]);
  }
  EXPECT_EQ(part[part.size() - 1], all[(part.size() * 3 - 1) % kMany]);
}

TEST(Samplers, DistributedRefusesARankOutside) {
  struct Short final : SamplerInterface {
    std::int64_t size() const noexcept override { return 4; }
    Order order(std::uint64_t, std::uint64_t) const override { return Indices{}; }
  };
  EXPECT_THAT(error_of([] { sampler::distributed(Short(), {.num_replicas = 2}).order(0, 0); })->message(),
              HasSubstr("gave 0 indices and said that it has 4"));
  EXPECT_THAT(error_of([] { sampler::distributed(10, {.rank = 3, .num_replicas = 3}); })->message(),
              HasSubstr("Invalid rank 3, rank should be in the interval [0, 2]"));
  EXPECT_EQ(error_of([] { sampler::distributed(10, {.rank = -1, .num_replicas = 3}); })->code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { sampler::distributed(10, {.num_replicas = 0}); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([] { Sampler(std::shared_ptr<const SamplerInterface>()); })->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(sampler::distributed(0, {.num_replicas = 2}).order(0, 0).to_vector(), IsEmpty());
}

std::vector<Indices> split(const BatchOrder& batches) {
  std::vector<Indices> out(static_cast<std::size_t>(batches.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = batches[static_cast<std::int64_t>(i)];
  return out;
}

TEST(BatchSamplers, BatchesAreTorchs) {
  EXPECT_EQ(split(sampler::batches(sampler::random(10), 4).batches(2, 0)), golden::kBatches);
  EXPECT_EQ(split(sampler::batches(sampler::random(10), 4, true).batches(2, 0)),
            std::vector<Indices>(golden::kBatches.begin(), golden::kBatches.begin() + 2));
}

TEST(BatchSamplers, SizeIsTheNumberOfBatches) {
  for (std::int64_t n = 0; n < 14; ++n) {
    for (std::int64_t size = 1; size < 6; ++size) {
      for (const bool drop : {false, true}) {
        const BatchSampler sampler = sampler::batches(sampler::sequential(n), size, drop);
        const auto all = sampler.batches(0, 0);
        EXPECT_EQ(sampler.size(), drop ? n / size : (n + size - 1) / size);
        EXPECT_EQ(all.size(), sampler.size());
        for (const Indices& batch : split(all)) EXPECT_LE(static_cast<std::int64_t>(batch.size()), size);
      }
    }
  }
}

TEST(BatchSamplers, GivenBatchesStayAsTheyAre) {
  const std::vector<Indices> given = {{3, 1}, {2}, {0, 0, 5}};
  EXPECT_EQ(split(sampler::batches(given).batches(8, 9)), given);
  EXPECT_EQ(sampler::batches(given).size(), 3);
  EXPECT_EQ(error_of([] { sampler::batches(std::vector<Indices>{{1}, {}}); })->code(), ErrorCode::kInvalidArgument);
}

TEST(BatchSamplers, RefusesBatchesThatEndOutOfOrder) {
  for (const Indices& ends : {Indices{2}, Indices{2, 1}, Indices{0, 4}, Indices{-1}}) {
    const auto error = error_of([&] { BatchOrder(Indices(ends.size()), ends); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("ends a batch at position"));
  }
}

TEST(BatchSamplers, ASizeBeyondAllSamplesIsOneBatch) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(split(sampler::batches(sampler::sequential(3), kMost).batches(0, 0)), (std::vector<Indices>{{0, 1, 2}}));
  const BatchOrder all = sampler::batches(sampler::sequential(kMost), 1000).batches(0, 0);
  const Indices last = all[all.size() - 1];
  EXPECT_EQ(last.back(), kMost - 1);
  EXPECT_EQ(last.size(), static_cast<std::size_t>(kMost % 1000));
}

TEST(BatchSamplers, RefusesABatchSizeBelowOne) {
  EXPECT_THAT(error_of([] { sampler::batches(sampler::sequential(3), 0); })->message(),
              HasSubstr("batch_size should be a positive integer value"));
  for (const std::int64_t size : {0, -1}) {
    EXPECT_EQ(error_of([&] { BatchOrder::equal(Order::range(3), size); })->code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(error_of([] { BatchSampler(std::shared_ptr<const BatchSamplerInterface>()); })->code(),
            ErrorCode::kInvalidArgument);
}

TEST(DefaultSampler, HasNoSamples) {
  EXPECT_EQ(Sampler().size(), 0);
  EXPECT_TRUE(Sampler().order(1, 2).empty());
  EXPECT_EQ(BatchSampler().size(), 0);
  EXPECT_EQ(BatchSampler().batches(1, 2).size(), 0);
}

}  // namespace
}  // namespace penstock
