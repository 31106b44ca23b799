#include "archive/inspect/block_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/processor.h"

namespace penstock::archive {
namespace {

/// Numbers of which some are zero and some denormal.
template <class Number>
std::vector<Number> numbers(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<Number> normal;
  std::vector<Number> out(kBlock);
  for (Number& x : out) x = normal(random);
  for (std::size_t i = seed; i < kBlock; i += 37) out[i] = 0;
  for (std::size_t i = seed + 1; i < kBlock; i += 59) out[i] = -std::numeric_limits<Number>::min() / 4;
  return out;
}

using Sums = std::tuple<double, double, double, double, std::int64_t, std::int64_t>;

/// What all loops make of one block.
struct Results {
  std::tuple<double, double, double, std::int64_t, std::int64_t> doubles;
  double squares = 0;
  std::tuple<float, float, float, double, double> floats;
  std::pair<std::int64_t, std::int64_t> small;
  Sums of_doubles;
  std::vector<std::pair<bool, Sums>> of_floats;
  std::array<std::uint16_t, kBlock / 2> places_of_doubles{};
  std::array<std::uint16_t, kBlock / 2> places_of_floats{};
};

/// A sum that is not finite has no value that counts.
Sums sums_of(const DifferenceSums& x) {
  const double relative = std::isfinite(x.sum_relative) ? x.sum_relative : std::numeric_limits<double>::infinity();
  return {x.max_absolute, x.sum_absolute, x.max_relative, relative, x.different, x.zeros_of_b};
}

/// The bytes of floats, one byte off, as elements of a file may lie.
std::vector<std::byte> unaligned(const std::vector<float>& values) {
  std::vector<std::byte> out(1 + values.size() * sizeof(float));
  std::memcpy(out.data() + 1, values.data(), out.size() - 1);
  return out;
}

Results run(const BlockLoops& loops, unsigned seed) {
  const std::vector<double> a = numbers<double>(seed);
  const std::vector<double> b = numbers<double>(seed + 2);
  const std::vector<std::byte> floats = unaligned(numbers<float>(seed));
  const std::byte* const c = floats.data() + 1;
  std::vector<float> without_zeros = numbers<float>(seed + 2);
  std::replace(without_zeros.begin(), without_zeros.end(), 0.0F, 0.5F);
  const Histogram::Scale scale{4, -32};
  Results out;
  DoubleScan of_doubles;
  loops.scan_doubles(a.data(), 1e-300, of_doubles);
  out.doubles = {of_doubles.low, of_doubles.high, of_doubles.sum, of_doubles.small, of_doubles.zeros};
  loops.square_doubles(a.data(), 0.25, out.squares);
  loops.place_doubles(a.data(), scale, out.places_of_doubles.data());
  FloatScan of_floats;
  loops.scan_floats(c, 0.25, of_floats);
  out.floats = {of_floats.low, of_floats.high, of_floats.nearest, of_floats.sum, of_floats.squares};
  SmallCounts small;
  loops.count_small(c, std::numeric_limits<float>::min(), small);
  out.small = {small.small, small.zeros};
  loops.place_floats(c, scale, out.places_of_floats.data());
  DifferenceSums sums;
  loops.compare(a.data(), b.data(), 0.125, 0.5, sums);
  out.of_doubles = sums_of(sums);
  for (const std::vector<float>& other : {numbers<float>(seed + 2), without_zeros}) {
    const std::vector<std::byte> d = unaligned(other);
    for (const double known : {3.0, 1e300}) {
      for (const double tolerance : {0.0, 0.125}) {
        const bool is_greater = loops.compare_floats(c, d.data() + 1, tolerance, 0, known, sums);
        out.of_floats.emplace_back(is_greater, sums_of(sums));
      }
    }
  }
  return out;
}

TEST(BlockLoops, AreTheSameForEveryProcessor) {
  if (!core::has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Results got = run(kAvx2Loops, seed);
    const Results want = run(kBaselineLoops, seed);
    EXPECT_EQ(got.doubles, want.doubles);
    EXPECT_EQ(got.squares, want.squares);
    EXPECT_EQ(got.floats, want.floats);
    EXPECT_EQ(got.small, want.small);
    EXPECT_EQ(got.places_of_doubles, want.places_of_doubles);
    EXPECT_EQ(got.places_of_floats, want.places_of_floats);
    EXPECT_EQ(got.of_doubles, want.of_doubles);
    EXPECT_EQ(got.of_floats, want.of_floats);
    EXPECT_TRUE(std::isfinite(std::get<3>(got.of_floats.back().second)));
  }
}

TEST(BlockLoops, CountSmallNumbersAndZeros) {
  std::vector<float> values(kBlock, 1.0F);
  values[0] = 0;
  values[100] = -0.0F;
  values[511] = 1e-40F;
  values[510] = -1e-40F;
  const auto bytes = std::as_bytes(std::span(values));
  SmallCounts got;
  block_loops().count_small(bytes.data(), std::numeric_limits<float>::min(), got);
  EXPECT_EQ(got.small, 4);
  EXPECT_EQ(got.zeros, 2);
  FloatScan scan;
  block_loops().scan_floats(bytes.data(), 0, scan);
  EXPECT_EQ(scan.nearest, 0);
}

}  // namespace
}  // namespace penstock::archive
