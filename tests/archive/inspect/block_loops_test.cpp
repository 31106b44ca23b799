#include "archive/inspect/block_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
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

/// What all loops make of one block.
struct Results {
  DoubleScan doubles;
  double squares = 0;
  FloatScan floats;
  SmallCounts small;
  DifferenceSums of_doubles;
  DifferenceSums of_floats;
  std::array<std::uint16_t, kBlock / 2> places_of_doubles{};
  std::array<std::uint16_t, kBlock / 2> places_of_floats{};
};

Results run(const BlockLoops& loops, unsigned seed) {
  const std::vector<double> a = numbers<double>(seed);
  const std::vector<double> b = numbers<double>(seed + 2);
  // One byte off, as elements of a file may lie.
  std::vector<std::byte> memory(2 * kBlock * sizeof(float) + 1);
  std::byte* const c = memory.data() + 1;
  std::byte* const d = c + kBlock * sizeof(float);
  std::memcpy(c, numbers<float>(seed).data(), kBlock * sizeof(float));
  std::memcpy(d, numbers<float>(seed + 2).data(), kBlock * sizeof(float));
  const Histogram::Scale scale{4, -32};
  Results out;
  loops.scan_doubles(a.data(), 1e-300, out.doubles);
  loops.square_doubles(a.data(), 0.25, out.squares);
  loops.place_doubles(a.data(), scale, out.places_of_doubles.data());
  loops.scan_floats(c, 0.25, out.floats);
  loops.count_small(c, std::numeric_limits<float>::min(), out.small);
  loops.place_floats(c, scale, out.places_of_floats.data());
  loops.compare(a.data(), b.data(), 0.125, 0.5, out.of_doubles);
  loops.compare_floats(c, d, {.rtol = 0.125, .atol = 0.5, .greatest = 1e30}, out.of_floats);
  return out;
}

void expect_same(const DifferenceSums& got, const DifferenceSums& want) {
  EXPECT_EQ(got.max_absolute, want.max_absolute);
  EXPECT_EQ(got.sum_absolute, want.sum_absolute);
  EXPECT_EQ(got.max_relative, want.max_relative);
  EXPECT_EQ(std::isfinite(got.sum_relative), std::isfinite(want.sum_relative));
  if (std::isfinite(want.sum_relative)) {
    EXPECT_EQ(got.sum_relative, want.sum_relative);
  }
  EXPECT_EQ(got.different, want.different);
  EXPECT_EQ(got.zeros_of_b, want.zeros_of_b);
}

TEST(BlockLoops, AreTheSameForEveryProcessor) {
  if (!core::has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Results got = run(kAvx2Loops, seed);
    const Results want = run(kBaselineLoops, seed);
    EXPECT_EQ(got.doubles.low, want.doubles.low);
    EXPECT_EQ(got.doubles.high, want.doubles.high);
    EXPECT_EQ(got.doubles.sum, want.doubles.sum);
    EXPECT_EQ(got.doubles.small, want.doubles.small);
    EXPECT_EQ(got.doubles.zeros, want.doubles.zeros);
    EXPECT_EQ(got.squares, want.squares);
    EXPECT_EQ(got.floats.low, want.floats.low);
    EXPECT_EQ(got.floats.high, want.floats.high);
    EXPECT_EQ(got.floats.nearest, want.floats.nearest);
    EXPECT_EQ(got.floats.sum, want.floats.sum);
    EXPECT_EQ(got.floats.squares, want.floats.squares);
    EXPECT_EQ(got.small.small, want.small.small);
    EXPECT_EQ(got.small.zeros, want.small.zeros);
    EXPECT_EQ(got.places_of_doubles, want.places_of_doubles);
    EXPECT_EQ(got.places_of_floats, want.places_of_floats);
    expect_same(got.of_doubles, want.of_doubles);
    expect_same(got.of_floats, want.of_floats);
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
