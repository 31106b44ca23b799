#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "data/support.h"
#include "penstock/lengths.h"
#include "penstock/mix.h"
#include "penstock/ops.h"
#include "penstock/promote.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using Integers = std::vector<std::int64_t>;

/// Samples begin, begin + 1, ..., as tensors.
Dataset tensors_from(std::int64_t size, std::int64_t begin) {
  Tensor out = Tensor::empty(Shape{size}, DType::int64);
  for (std::int64_t i = 0; i < size; ++i) out.values<std::int64_t>()[static_cast<std::size_t>(i)] = begin + i;
  return rows(out);
}

Integers drawn_in(const Dataset& dataset, std::uint64_t seed, std::uint64_t epoch, std::size_t workers = 1) {
  DataLoader loader(dataset, {.batch_size = dataset.size(), .num_workers = workers, .seed = seed});
  loader.set_epoch(epoch);
  return test::values_of<std::int64_t>(loader.next()->tensor());
}

TEST(Choice, GivesSampleIOfOneOfThemByWeight) {
  constexpr std::int64_t kSize = 6000;
  const Dataset chosen =
      choice({tensors_from(kSize, 0), tensors_from(kSize, 10000), tensors_from(kSize, 20000)}, {1, 3, 0});
  const Integers values = drawn_in(chosen, 1, 0);
  std::int64_t second = 0;
  for (std::int64_t i = 0; i < kSize; ++i) {
    const std::int64_t value = values[static_cast<std::size_t>(i)];
    ASSERT_EQ(value % 10000, i);
    ASSERT_LT(value, 20000) << "a weight of 0";
    second += value / 10000;
  }
  // Within five deviations of a binomial of 0.75.
  EXPECT_LT(std::abs(static_cast<double>(second) - 0.75 * kSize), 5 * std::sqrt(kSize * 0.75 * 0.25));
}

TEST(Choice, DependsOnSeedEpochAndIndexAlone) {
  const Dataset chosen = choice({tensors_from(200, 0), tensors_from(200, 1000)});
  const Integers first = drawn_in(chosen, 7, 2);
  EXPECT_EQ(drawn_in(chosen, 7, 2, 0), first);
  EXPECT_EQ(drawn_in(chosen, 7, 2, 4), first);
  EXPECT_NE(drawn_in(chosen, 7, 3), first);
  EXPECT_NE(drawn_in(chosen, 8, 2), first);
  Integers alone;
  for (std::int64_t i = 0; i < 200; ++i) alone.push_back(chosen.get(i).as_tensor().item<std::int64_t>());
  EXPECT_EQ(alone, drawn_in(chosen, 0, 0));
  DataLoader shuffled(chosen, {.batch_size = 9, .shuffle = true, .num_workers = 3, .seed = 7});
  shuffled.set_epoch(2);
  for (const Batch& batch : shuffled) {
    const Integers values = test::values_of<std::int64_t>(batch.tensor());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], first[static_cast<std::size_t>(batch.indices[i])]);
    }
  }
}

TEST(Choice, ZippedOnesDrawAlikeAndNestedOnesApart) {
  const auto pair = [](std::int64_t base) { return choice({tensors_from(400, base), tensors_from(400, base + 1000)}); };
  const Dataset both = zip(pair(0), pair(50000));
  for (std::int64_t i = 0; i < 400; i += 7) {
    const Value sample = both.get(i);
    EXPECT_EQ(sample[0].as_tensor().item<std::int64_t>() + 50000, sample[1].as_tensor().item<std::int64_t>());
  }
  std::set<std::int64_t> seen;
  for (const std::int64_t value : drawn_in(choice({pair(0), pair(10000)}), 3, 0)) seen.insert(value / 1000);
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 10, 11})) << "the inner draw is not the outer one";
}

TEST(Choice, RandomStepsBehindItDrawApartFromIt) {
  Tensor forward = Tensor::empty(Shape{64, 2}, DType::int64);
  for (std::int64_t i = 0; i < 128; ++i) forward.values<std::int64_t>()[static_cast<std::size_t>(i)] = i % 2;
  const Dataset one = rows(forward);
  const Dataset chosen = choice({one, rows(forward + 10)}).random_flip();
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 64; ++i) seen.insert(chosen.get(i).as_tensor()[0].item<std::int64_t>());
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 10, 11}));
}

TEST(Choice, RefusesUnequalSizesAndOddWeights) {
  const Dataset five = tensors_from(5, 0);
  EXPECT_EQ(test::code_of([&] { choice({five, tensors_from(4, 0)}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([] { choice({}); }), ErrorCode::kInvalidArgument);
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {0, 0}, {-1, 2}, {std::nan(""), 1}, {std::numeric_limits<double>::infinity(), 1}}) {
    EXPECT_EQ(test::code_of([&] { choice({five, five}, weights); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(drawn_in(choice({five, tensors_from(5, 10)}, {0, 1e-300}), 0, 0), (Integers{10, 11, 12, 13, 14}));
  EXPECT_EQ(drawn_in(choice({five}), 0, 0), (Integers{0, 1, 2, 3, 4}));
}

TEST(Choice, HasNoLengthsOfItsOwn) {
  const Dataset tokens = rows(Tensor::zeros({4, 3}));
  EXPECT_THAT(test::error_of([&] {
                lengths(choice({tokens, tokens}));
              })->message(),
              HasSubstr("another sample in each"));
  EXPECT_EQ(test::code_of([&] { promote(choice({tokens, tokens})); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock
