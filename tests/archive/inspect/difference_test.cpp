#include "archive/inspect/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::archive {
namespace {

template <class A, class B>
Difference of(const std::vector<A>& a, const std::vector<B>& b, const Tolerance& tolerance = {}) {
  Difference out(penstock::DType::of<A>(), penstock::DType::of<B>(), tolerance);
  out.add(0, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  return out;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

TEST(Difference, SaysHowManyWhereAndHowMuch) {
  std::vector<float> a(1'500, 2.0F);
  std::vector<float> b = a;
  b[700] = 4.0F;
  b[1'499] = 1.0F;  // in a block that is not full
  const Difference got = of(a, b);
  EXPECT_EQ(got.different(), 2);
  EXPECT_EQ(got.first(), 700);
  EXPECT_EQ(got.max_absolute(), 2);
  EXPECT_DOUBLE_EQ(static_cast<double>(got.mean_absolute()), 3.0 / 1'500);
  EXPECT_EQ(got.max_relative(), 1);  // 1 of 1
  EXPECT_DOUBLE_EQ(static_cast<double>(got.mean_relative()), 1.5 / 1'500);
}

TEST(Difference, IntegersBeyondDoubleAreComparedExactly) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(of(std::vector{large}, std::vector{large - 1}).different(), 1);
  EXPECT_EQ(of(std::vector{large}, std::vector{9007199254740992.0}).different(), 1);
  EXPECT_EQ(of(std::vector{large - 1}, std::vector{9007199254740992.0}).different(), 0);
  const auto extremes =
      of(std::vector{std::numeric_limits<std::int64_t>::min()}, std::vector{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(static_cast<std::uint64_t>(extremes.max_absolute()), ~std::uint64_t{0});
  EXPECT_EQ(of(std::vector<std::uint64_t>{0}, std::vector<std::int64_t>{-1}).max_absolute(), 1);
}

TEST(Difference, DoesNotOverflow) {
  const Difference got = of(std::vector<double>(512, 1.7e308), std::vector<double>(512, -1.7e308));
  EXPECT_EQ(got.not_finite(), 0);
  EXPECT_EQ(got.different(), 512);
  EXPECT_NEAR(static_cast<double>(got.max_absolute() / 1e308L), 3.4, 1e-9);
  EXPECT_DOUBLE_EQ(static_cast<double>(got.max_relative()), 2);
}

TEST(Difference, ToleratesAsIsclose) {
  const std::vector<double> a(512, 1.0);
  const std::vector<double> b(512, 1.25);
  EXPECT_EQ(of(a, b, {.atol = 0.25}).different(), 0);
  EXPECT_EQ(of(a, b, {.rtol = 0.2}).different(), 0);
  EXPECT_EQ(of(a, b, {.rtol = 0.125, .atol = 0.0625}).different(), 512);
  EXPECT_EQ(of(b, a, {.rtol = 0.2}).different(), 512);  // relative to b
  EXPECT_EQ(of(a, b, {.atol = 0.25}).max_absolute(), 0.25);
}

TEST(Difference, NaNsAndInfinities) {
  const std::vector<double> a{kNaN, kNaN, kInfinity, kInfinity, -kInfinity, 0.0, -0.0};
  const std::vector<double> b{kNaN, 1.0, kInfinity, -kInfinity, 1.0, -0.0, 5.0};
  const Difference got = of(a, b, {.rtol = 1, .atol = 1});
  EXPECT_EQ(got.different(), 3);
  EXPECT_EQ(got.not_finite(), 3);
  EXPECT_EQ(got.first(), 1);
  EXPECT_EQ(got.max_absolute(), 5);
  EXPECT_EQ(of(a, a).different(), 0);
  EXPECT_EQ(of(a, a, {.nan_equal = false}).different(), 2);
}

/// Float's own way beside that of double, for values that both hold.
void expect_alike(const std::vector<float>& a, const std::vector<float>& b, const Tolerance& tolerance) {
  const Difference got = of(a, b, tolerance);
  const Difference want =
      of(std::vector<double>(a.begin(), a.end()), std::vector<double>(b.begin(), b.end()), tolerance);
  EXPECT_EQ(got.count(), want.count());
  EXPECT_EQ(got.different(), want.different());
  EXPECT_EQ(got.first(), want.first());
  EXPECT_EQ(got.not_finite(), want.not_finite());
  EXPECT_EQ(got.zeros_of_b(), want.zeros_of_b());
  EXPECT_EQ(got.max_absolute(), want.max_absolute());
  const auto near = [](long double x, long double y) {
    EXPECT_NEAR(static_cast<double>(x), static_cast<double>(y), 1e-13 * std::fabs(static_cast<double>(y)));
  };
  near(got.max_relative(), want.max_relative());
  near(got.mean_absolute(), want.mean_absolute());
  near(got.mean_relative(), want.mean_relative());
}

TEST(Difference, FloatsAsDoubles) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> a(40 * 512 + 77);
  std::vector<float> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = normal(random);
  for (std::size_t i = 0; i < a.size(); ++i) b[i] = i < 700 ? a[i] : normal(random);
  for (const Tolerance& tolerance : {Tolerance{}, {.rtol = 0.5}, {.atol = 0.25}, {.rtol = 1e-3, .atol = 1e-3}}) {
    expect_alike(a, b, tolerance);
    expect_alike(b, a, tolerance);
  }
  b[30 * 512 + 5] = 1e-30F;  // far into the greatest relative difference
  expect_alike(a, b, {});
  for (const float odd : {0.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}) {
    for (const std::size_t at : {std::size_t{3}, std::size_t{9 * 512}, std::size_t{39 * 512 + 511}}) {
      std::vector<float> changed = b;
      changed[at] = odd;
      expect_alike(a, changed, {});
      expect_alike(changed, a, {.rtol = 0.125});
    }
  }
}

TEST(Difference, FloatsAtTheirLimits) {
  const std::size_t count = 4 * 512;
  const float least = std::numeric_limits<float>::denorm_min();
  const float most = std::numeric_limits<float>::max();
  for (const float x : {0.0F, least, 1.0F, 3.0F, -most, most}) {
    for (const float y : {0.0F, -least, 1.0F, 7.0F, most}) {
      expect_alike(std::vector<float>(count, x), std::vector<float>(count, y), {});
    }
  }
}

TEST(Difference, OtherTypesThatFitFloat) {
  std::vector<std::int8_t> a(3 * 512);
  std::vector<std::uint16_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::int8_t>(i % 251);
    b[i] = static_cast<std::uint16_t>(1 + (i * 7919) % 65535);
  }
  const Difference got = of(a, b);
  const Difference want = of(std::vector<double>(a.begin(), a.end()), std::vector<double>(b.begin(), b.end()));
  EXPECT_EQ(got.different(), want.different());
  EXPECT_EQ(got.max_absolute(), want.max_absolute());
  EXPECT_DOUBLE_EQ(static_cast<double>(got.max_relative()), static_cast<double>(want.max_relative()));
  EXPECT_DOUBLE_EQ(static_cast<double>(got.mean_relative()), static_cast<double>(want.mean_relative()));
}

TEST(Difference, ZerosOfBHaveNoRelativeDifference) {
  const Difference got = of(std::vector<double>(512, 1.0), std::vector<double>(512, 0.0));
  EXPECT_EQ(got.zeros_of_b(), 512);
  EXPECT_EQ(got.max_relative(), 0);
  EXPECT_EQ(got.mean_relative(), 0);
  EXPECT_EQ(of(std::vector<double>(512, 0.0), std::vector<double>(512, 0.0)).zeros_of_b(), 0);
}

TEST(Difference, ComplexNumbersByTheirAbsoluteDifference) {
  using Complex = std::complex<double>;
  const Difference got = of(std::vector<Complex>{{3, 4}, {1, kNaN}}, std::vector<Complex>{{0, 0}, {kNaN, 2}});
  EXPECT_EQ(got.different(), 1);
  EXPECT_EQ(got.max_absolute(), 5);
}

TEST(Difference, WithoutNumbersBytesDecide) {
  const DType text = DType::with_descr(DType::Code::kBytes, 3, "|S3");
  Difference got(text, text, {});
  const std::string a = "abcdefghi";
  const std::string b = "abcdeXghi";
  got.add(10, std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
  EXPECT_EQ(got.different(), 1);
  EXPECT_EQ(got.first(), 11);
  EXPECT_EQ(got.first_of_b(), "deX");
  EXPECT_FALSE(got.is_numeric());
}

TEST(Difference, PartsPutTogetherAreTheWhole) {
  std::vector<double> a(3'000);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i);
  std::vector<double> b = a;
  for (std::size_t i = 1'111; i < b.size(); i += 97) b[i] += 0.5;
  Difference parts(DType::float64, DType::float64, {});
  for (std::size_t first = 0; first < a.size(); first += 1'000) {
    Difference part(DType::float64, DType::float64, {});
    part.add(static_cast<std::int64_t>(first), std::as_bytes(std::span(a).subspan(first, 1'000)),
             std::as_bytes(std::span(b).subspan(first, 1'000)));
    parts.merge(part);
  }
  const Difference whole = of(a, b);
  EXPECT_EQ(parts.first(), 1'111);
  EXPECT_EQ(parts.different(), whole.different());
  EXPECT_EQ(parts.count(), 3'000);
  EXPECT_NEAR(static_cast<double>(parts.mean_absolute()), static_cast<double>(whole.mean_absolute()), 1e-15);
}

}  // namespace
}  // namespace penstock::archive
