#include "penstock/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/support.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

/// Samples begin, begin + 1, ...
Dataset counting(std::int64_t size, std::int64_t begin = 0) {
  std::vector<Value> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(Value::integer(begin + i));
  return dataset(std::move(values));
}

std::vector<std::int64_t> all_of(const Dataset& dataset) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < dataset.size(); ++i) out.push_back(dataset.get(i).as_int());
  return out;
}

TEST(Stretches, TakeSkipAndRepeat) {
  const Dataset five = counting(5);
  EXPECT_THAT(all_of(take(five, 2)), ElementsAre(0, 1));
  EXPECT_THAT(all_of(skip(five, 3)), ElementsAre(3, 4));
  EXPECT_THAT(all_of(repeat(take(skip(five, 1), 2), 2)), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(take(five, 9).size(), 5);
  EXPECT_EQ(skip(five, 9).size(), 0);
  EXPECT_EQ(repeat(five, 0).size(), 0);
  EXPECT_EQ(repeat(take(five, 0), 7).size(), 0);
  EXPECT_EQ(repeat(five, std::int64_t{1} << 60).describe(-1), "<values>[4]");
  DataLoader loader(skip(repeat(five, 2), 4), {.batch_size = 6, .num_workers = 0});
  EXPECT_THAT(test::values_of<std::int64_t>(loader.next()->tensor()), ElementsAre(4, 0, 1, 2, 3, 4));
}

TEST(Stretches, RefuseNegativeCountsAndTooManySamples) {
  const Dataset five = counting(5);
  EXPECT_EQ(test::code_of([&] { take(five, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { skip(five, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { repeat(five, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { repeat(five, std::numeric_limits<std::int64_t>::max()); }),
            ErrorCode::kInvalidArgument);
}

TEST(Mix, SharesAreExactFromTheFirstSampleOn) {
  const std::vector<std::vector<double>> cases = {{1, 1},          {3, 1},         {0.7, 0.2, 0.1},
                                                  {1, 0, 2},       {1e-3, 1, 1e3}, {1.0 / 3, 1.0 / 3, 1.0 / 3},
                                                  {5, 4, 3, 2, 1}, {1e300, 1e300}, {1}};
  for (const std::vector<double>& weights : cases) {
    std::vector<Dataset> parts;
    double sum = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      parts.push_back(counting(7, static_cast<std::int64_t>(k) * 1000));
      sum += weights[k] / weights[0];
    }
    const std::vector<std::int64_t> mixed = all_of(mix(parts, weights, {.size = 2000}));
    std::vector<std::int64_t> given(weights.size(), 0);
    for (std::size_t n = 0; n < mixed.size(); ++n) {
      const auto from = static_cast<std::size_t>(mixed[n] / 1000);
      ASSERT_EQ(mixed[n] % 1000, given[from]++ % 7) << "in order, and again from the start";
      for (std::size_t k = 0; k < weights.size(); ++k) {
        const double share = static_cast<double>(n + 1) * (weights[k] / weights[0] / sum);
        ASSERT_LT(std::abs(static_cast<double>(given[k]) - share), 1.0 + 1e-6) << "dataset " << k << " after " << n + 1;
      }
    }
  }
}

TEST(Mix, EndsBeforeASampleComesAgainOrWhenAllHaveCome) {
  const std::vector<Dataset> parts = {counting(4), counting(3, 10)};
  EXPECT_THAT(all_of(mix(parts, {1, 1})), ElementsAre(0, 10, 1, 11, 2, 12, 3));
  EXPECT_THAT(all_of(mix(parts, {1, 1}, {.end = MixEnd::kAll})), ElementsAre(0, 10, 1, 11, 2, 12, 3));
  EXPECT_THAT(all_of(mix(parts, {1, 3})), ElementsAre(10, 0, 11, 12));
  const std::vector<std::int64_t> all = all_of(mix(parts, {1, 3}, {.end = MixEnd::kAll}));
  EXPECT_EQ(std::count(all.begin(), all.end(), 3), 1);
  EXPECT_EQ(all.back(), 3);
  EXPECT_THAT(all_of(mix({counting(2), counting(0)}, {1, 0})), ElementsAre(0, 1));
}

TEST(Mix, IsResumedAndShuffledAsAnyDataset) {
  const Dataset mixed = mix({counting(40), counting(60, 100)}, {1, 2});
  const LoaderOptions options{.batch_size = 7, .shuffle = true, .num_workers = 2, .seed = 9};
  DataLoader loader(mixed, options);
  loader.next();
  const LoaderPosition position = loader.position();
  DataLoader again(mixed, options);
  again.seek(position);
  EXPECT_EQ(test::rest_of_epoch(again), test::rest_of_epoch(loader));
}

TEST(Mix, RefusesBadWeights) {
  const std::vector<Dataset> parts = {counting(4), counting(3)};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{}, {1}, {1, 2, 3}, {1, -1}, {1, nan}, {inf, 1}, {0, 0}}) {
    EXPECT_EQ(test::code_of([&] { mix(parts, weights); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(test::code_of([] { mix(std::vector<Dataset>(), {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { mix({counting(4), counting(0)}, {1, 1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { mix(parts, {1, 1}, {.size = -1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { mix(parts, {1, 1e-300}, {.end = MixEnd::kAll}); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
