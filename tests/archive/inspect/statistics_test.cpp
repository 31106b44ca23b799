#include "archive/inspect/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::archive {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
Statistics of(const std::vector<T>& values) {
  Statistics out(penstock::DType::of<T>());
  out.add(bytes_of(values));
  return out;
}

std::vector<double> normal(std::size_t count, double mean, double deviation) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> numbers(mean, deviation);
  std::vector<double> out(count);
  for (double& value : out) value = numbers(random);
  return out;
}

std::uint64_t sum_of(const Histogram::Bins& bins) {
  return std::accumulate(bins.counts.begin(), bins.counts.end(), std::uint64_t{0});
}

TEST(Statistics, AreThoseOfTheNumbers) {
  const std::vector<double> values = normal(10'000, 3, 0.5);
  const Statistics got = of(values);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 10'000;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  EXPECT_EQ(got.min(), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(got.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_NEAR(got.mean(), mean, 1e-12);
  EXPECT_NEAR(got.deviation(), std::sqrt(squares / 10'000), 1e-12);
  EXPECT_EQ(got.finite(), 10'000);
}

TEST(Statistics, ADeviationSmallBesideTheMeanIsExact) {
  std::vector<double> values(4'096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1e9 + static_cast<double>(i % 2);
  EXPECT_DOUBLE_EQ(of(values).mean(), 1e9 + 0.5);
  EXPECT_DOUBLE_EQ(of(values).deviation(), 0.5);
}

TEST(Statistics, NumbersNearTheEndsOfDoubleNeitherOverflowNorVanish) {
  for (const double size : {1.7e308, 1e-200, 5e-324}) {
    std::vector<double> values(1'024, size);
    for (std::size_t i = 0; i < values.size(); i += 2) values[i] = -size;
    EXPECT_EQ(of(values).mean(), 0) << size;
    EXPECT_DOUBLE_EQ(of(values).deviation(), size);
    EXPECT_EQ(of(values).positive_infinities() + of(values).negative_infinities(), 0);
  }
  EXPECT_DOUBLE_EQ(of(std::vector<double>(2'000, 1.7e308)).mean(), 1.7e308);
}

TEST(Statistics, IllElementsAreCountedAndLeftOut) {
  std::vector<float> values(2'000, 2.0F);
  values[3] = std::nanf("");
  values[700] = std::numeric_limits<float>::infinity();
  values[1'999] = -std::numeric_limits<float>::infinity();
  values[1'000] = 0;
  const Statistics got = of(values);
  EXPECT_EQ(got.nans(), 1);
  EXPECT_EQ(got.positive_infinities(), 1);
  EXPECT_EQ(got.negative_infinities(), 1);
  EXPECT_EQ(got.zeros(), 1);
  EXPECT_EQ(got.finite(), 1'997);
  EXPECT_EQ(got.max(), 2);
  EXPECT_TRUE(got.is_ill());
  EXPECT_EQ(sum_of(got.histogram().bins(16)), 1'997u);
}

TEST(Statistics, ZerosAndDenormalFloatsAreCounted) {
  std::vector<float> values(3 * 512 + 9, 0.5F);
  for (const std::size_t at : {std::size_t{2}, std::size_t{700}, values.size() - 1}) values[at] = 0;
  for (const std::size_t at : {std::size_t{5}, std::size_t{1'025}}) values[at] = -1e-40F;
  const Statistics got = of(values);
  EXPECT_EQ(got.zeros(), 3);
  EXPECT_EQ(got.denormals(), 2);
  const Statistics booleans = of(std::vector<std::uint8_t>(2'000, 0));
  EXPECT_EQ(booleans.zeros(), 2'000);
  EXPECT_EQ(booleans.denormals(), 0);
}

TEST(Statistics, IntegersOf64BitsKeepEveryDigit) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const Statistics got = of(std::vector<std::int64_t>{most, most - 1, -most});
  EXPECT_EQ(got.greatest(), most);
  EXPECT_EQ(got.least(), -most);
  const Statistics unsigned_ones = of(std::vector<std::uint64_t>{~std::uint64_t{0}, 5});
  EXPECT_EQ(static_cast<std::uint64_t>(unsigned_ones.greatest()), ~std::uint64_t{0});
  EXPECT_EQ(unsigned_ones.least(), 5);
}

TEST(Statistics, PartsPutTogetherAreTheWhole) {
  const std::vector<double> values = normal(5'000, -1, 100);
  const Statistics whole = of(values);
  Statistics parts(DType::float64);
  for (const auto& [first, last] : {std::pair(0, 3), std::pair(3, 3), std::pair(3, 2'000), std::pair(2'000, 5'000)}) {
    parts.merge(of(std::vector<double>(values.begin() + first, values.begin() + last)));
  }
  EXPECT_EQ(parts.min(), whole.min());
  EXPECT_EQ(parts.max(), whole.max());
  EXPECT_NEAR(parts.mean(), whole.mean(), 1e-12);
  EXPECT_NEAR(parts.deviation(), whole.deviation(), 1e-11);
  EXPECT_EQ(parts.histogram().bins(16).counts, whole.histogram().bins(16).counts);
}

TEST(Histograms, CountEachNumberInItsInterval) {
  std::vector<double> values = normal(3'000, 0, 1);
  values.push_back(0.0);
  values.push_back(-40.0);  // comes late, and widens what is there
  const Histogram::Bins bins = of(values).histogram().bins(16);
  ASSERT_LE(bins.counts.size(), 16u);
  ASSERT_GT(bins.counts.size(), 4u);
  EXPECT_GT(bins.counts.front(), 0u);
  EXPECT_GT(bins.counts.back(), 0u);
  std::vector<std::uint64_t> expected(bins.counts.size());
  for (const double value : values) ++expected[static_cast<std::size_t>((value - bins.begin) / bins.width)];
  EXPECT_EQ(bins.counts, expected);
}

TEST(Histograms, TakeOneNumberTinyOnesAndTheLargest) {
  for (const double value : {0.0, 1.0, -3.5, 5e-324, -1.7e308}) {
    const Histogram::Bins bins = of(std::vector<double>(600, value)).histogram().bins(16);
    EXPECT_EQ(bins.counts, std::vector<std::uint64_t>{600}) << value;
  }
  const std::vector<double> all{-1.7e308, -1, -5e-324, 0, 5e-324, 1, 1.7e308};
  const Histogram::Bins bins = of(all).histogram().bins(16);
  EXPECT_EQ(sum_of(bins), all.size());
  EXPECT_TRUE(std::isfinite(bins.begin));
}

/// Half of a block of numbers `least`, half of them so little below 0 that their part of a width is no number.
template <class T>
void expect_two_ends(T least, T little) {
  std::vector<T> values(512, least);
  std::fill(values.begin() + 256, values.end(), little);
  for (const std::size_t count : {512, 511}) {
    values.resize(count);
    const Histogram::Bins bins = of(values).histogram().bins(16);
    EXPECT_EQ(sum_of(bins), count) << least;
    EXPECT_EQ(bins.counts.front(), 256u) << least;
    EXPECT_EQ(bins.counts.back(), count - 256) << least;
    EXPECT_EQ(bins.begin + bins.width * static_cast<double>(bins.counts.size()), 0) << least;
  }
}

TEST(Histograms, NumbersALittleBelowZeroAreBelowZero) {
  expect_two_ends(-0x1p100F, -1e-30F);
  expect_two_ends(-1024.0F, -1e-45F);
  expect_two_ends(-1024.0, -5e-324);
}

}  // namespace
}  // namespace penstock::archive
