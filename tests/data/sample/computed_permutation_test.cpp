#include "data/sample/computed_permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace penstock::data {
namespace {

TEST(ComputedPermutation, GivesEachNumberOnce) {
  for (const std::int64_t size : {0, 1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097, 100'000}) {
    const ComputedPermutation order(size, 7);
    std::vector<bool> seen(static_cast<std::size_t>(size), false);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t at = order(i);
      ASSERT_TRUE(at >= 0 && at < size) << size;
      ASSERT_FALSE(seen[static_cast<std::size_t>(at)]) << size << " " << i;
      seen[static_cast<std::size_t>(at)] = true;
    }
  }
}

TEST(ComputedPermutation, HoldsForAnySize) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t size : {most, std::int64_t{1} << 62, (std::int64_t{1} << 61) + 1}) {
    const ComputedPermutation order(size, 3);
    EXPECT_NE(order(0), order(1));
    EXPECT_LT(order(size - 1), size);
    EXPECT_GE(order(size - 1), 0);
  }
}

/// Chi-squared, of a table whose places should have equal counts.
double off_balance(const std::vector<double>& counts, double expected) {
  double out = 0;
  for (const double count : counts) out += (count - expected) * (count - expected) / expected;
  return out;
}

TEST(ComputedPermutation, PutsEachNumberAnywhere) {
  constexpr std::int64_t kSize = 6;
  constexpr std::uint64_t kKeys = 36'000;
  // Of all 720 orders of six numbers each is as likely.
  std::vector<double> orders(720, 0);
  std::vector<std::int64_t> numbers(kSize);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const ComputedPermutation order(kSize, key);
    std::size_t number = 0;
    for (std::int64_t i = 0; i < kSize; ++i) {
      numbers[static_cast<std::size_t>(i)] = order(i);
      const auto smaller =
          std::count_if(numbers.begin(), numbers.begin() + i, [&](std::int64_t before) { return before < order(i); });
      number = number * static_cast<std::size_t>(kSize - i) + static_cast<std::size_t>(order(i) - smaller);
    }
    ++orders[number];
  }
  // 719 degrees of freedom: above 870 by chance once in 10,000 times, and keys are fixed.
  EXPECT_LT(off_balance(orders, double(kKeys) / 720), 870);
}

TEST(ComputedPermutation, NeighboursComeApart) {
  constexpr std::int64_t kSize = 1'000'000;
  constexpr std::size_t kCells = 100;
  std::vector<double> steps(kCells, 0);
  const ComputedPermutation order(kSize, 11);
  for (std::int64_t i = 0; i + 1 < kSize; ++i) {
    const std::int64_t step = (order(i + 1) - order(i) + kSize) % kSize;
    ++steps[static_cast<std::size_t>(step / (kSize / static_cast<std::int64_t>(kCells)))];
  }
  EXPECT_LT(off_balance(steps, double(kSize) / kCells), 160);
}

}  // namespace
}  // namespace penstock::data
