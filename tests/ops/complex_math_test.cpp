// Functions of complex numbers against the C library's: in long double for what is near, in their own type for signs,
// infinities and NaN.

#include "ops/complex_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace penstock::ops {
namespace {

using Exact = std::complex<long double>;

template <class Real>
struct Function {
  const char* name;
  Complex<Real> (*ours)(Complex<Real>);
  Exact (*exact)(const Exact&);
  std::complex<Real> (*library)(const std::complex<Real>&);
};

template <class Real>
const std::vector<Function<Real>>& functions() {
  static const std::vector<Function<Real>> all = {
      {"abs",
       [](Complex<Real> z) {
         return Complex<Real>{modulus_of(z), 0};
       },
       [](const Exact& z) { return Exact(std::abs(z)); },
       [](const std::complex<Real>& z) { return std::complex<Real>(std::abs(z)); }},
      {"exp", exp_of<Real>, std::exp, std::exp},
      {"log", log_of<Real>, std::log, std::log},
      {"sqrt", sqrt_of<Real>, std::sqrt, std::sqrt},
      {"tanh", tanh_of<Real>, std::tanh, std::tanh},
  };
  return all;
}

template <class Real>
class Numbers {
 public:
  /// Any sign, and a size between the powers of two.
  Real between(int low, int high) {
    const auto size = static_cast<Real>(std::exp2(uniform_(random_) * (high - low) + low));
    return random_() % 2 == 0 ? size : -size;
  }
  Complex<Real> both_between(int low, int high) { return {between(low, high), between(low, high)}; }
  /// About the unit circle, at any distance.
  Complex<Real> near_circle() {
    const double angle = uniform_(random_) * 2 * std::numbers::pi;
    const double size = 1 + static_cast<double>(between(-kDigits, -1));
    return {static_cast<Real>(std::cos(angle) * size), static_cast<Real>(std::sin(angle) * size)};
  }
  /// The imaginary part is the number nearest to a multiple of pi / 2.
  Complex<Real> near_axis() {
    const auto quarters = static_cast<double>(random_() % 1000);
    return {between(-60, 3), static_cast<Real>(quarters * (std::numbers::pi / 2))};
  }
  /// Where results overflow or vanish.
  Complex<Real> near_overflow() {
    const Real most = std::log(std::numeric_limits<Real>::max());
    return {static_cast<Real>(most * (uniform_(random_) * 4 - 2)), between(kLowest, 1)};
  }

  static constexpr int kDigits = std::numeric_limits<Real>::digits;
  static constexpr int kLowest = std::numeric_limits<Real>::min_exponent - kDigits;
  static constexpr int kHighest = std::numeric_limits<Real>::max_exponent;

 private:
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_;
};

template <class Real>
std::vector<Complex<Real>> sample(int count) {
  Numbers<Real> numbers;
  std::vector<Complex<Real>> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(numbers.both_between(-3, 3));
    out.push_back(numbers.both_between(-30, 10));
    out.push_back(numbers.both_between(numbers.kLowest, numbers.kHighest - 1));
    out.push_back(numbers.both_between(numbers.kLowest, numbers.kLowest + 60));
    out.push_back({numbers.between(-5, 4), numbers.between(4, numbers.kHighest - 1)});
    out.push_back({numbers.between(-1, 0), numbers.between(numbers.kLowest, 0)});
    out.push_back({1, numbers.between(numbers.kLowest, 0)});
    out.push_back(numbers.near_circle());
    out.push_back(numbers.near_axis());
    out.push_back(numbers.near_overflow());
    const Real part = numbers.between(numbers.kLowest, numbers.kHighest - 1);
    out.push_back({part, part});
  }
  return out;
}

/// Units in the last place that `found` is from `exact`; overflow is right from half a unit beyond the largest.
template <class Real>
double distance(Real found, long double exact) {
  using Limits = std::numeric_limits<Real>;
  if (std::isinf(found)) return found == static_cast<Real>(exact) ? 0 : HUGE_VAL;
  const int exponent = exact == 0 ? Limits::min_exponent : std::max(std::ilogb(exact) + 1, Limits::min_exponent);
  return static_cast<double>(std::fabs(found - exact) / std::ldexp(1.0L, exponent - Limits::digits));
}

template <class Real>
void expect_near_exact(double units) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "nothing to compare with";
  for (const Complex<Real> z : sample<Real>(3000)) {
    for (const Function<Real>& function : functions<Real>()) {
      const Complex<Real> found = function.ours(z);
      const Exact exact = function.exact({z.real, z.imag});
      EXPECT_LE(distance(found.real, exact.real()), units)
          << std::hexfloat << function.name << " of " << z.real << ", " << z.imag << ": " << found.real;
      EXPECT_LE(distance(found.imag, exact.imag()), units)
          << std::hexfloat << function.name << " of " << z.real << ", " << z.imag << ": " << found.imag;
    }
  }
}

TEST(ComplexMath, OfDoublesIsNear) { expect_near_exact<double>(3); }
TEST(ComplexMath, OfFloatsIsRoundedToNearestAllButAlways) { expect_near_exact<float>(0.501); }

/// Both NaN, both infinite, both 0 or neither, and with the same sign.
template <class Real>
bool alike(Real a, Real b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::isinf(a) == std::isinf(b) && (a == 0) == (b == 0) && std::signbit(a) == std::signbit(b);
}

template <class Real>
void expect_special_values_of_c() {
  using Limits = std::numeric_limits<Real>;
  std::vector<Real> parts = {0,
                             Real(0.5),
                             1,
                             3,
                             Real(22.5),
                             Real(90),
                             720,
                             Limits::min() / 64,
                             Limits::max(),
                             Real(1e20),
                             Limits::infinity(),
                             Limits::quiet_NaN(),
                             Real(1e-20),
                             std::numbers::pi_v<Real> / 2};
  for (std::size_t i = 0, count = parts.size(); i < count; ++i) parts.push_back(-parts[i]);
  for (const Real real : parts) {
    for (const Real imag : parts) {
      for (const Function<Real>& function : functions<Real>()) {
        const Complex<Real> found = function.ours({real, imag});
        const std::complex<Real> expected = function.library({real, imag});
        EXPECT_TRUE(alike(found.real, expected.real()) && alike(found.imag, expected.imag()))
            << function.name << " of " << real << ", " << imag << ": " << found.real << ", " << found.imag << ", not "
            << expected;
      }
    }
  }
}

TEST(ComplexMath, SpecialValuesOfDoublesAreThoseOfC) { expect_special_values_of_c<double>(); }
TEST(ComplexMath, SpecialValuesOfFloatsAreThoseOfC) { expect_special_values_of_c<float>(); }

TEST(ComplexMath, CutsLieAlongTheNegativeAxis) {
  constexpr double pi = std::numbers::pi;
  EXPECT_EQ(log_of(Complex<double>{-1, 0.0}), (Complex<double>{0, pi}));
  EXPECT_EQ(log_of(Complex<double>{-1, -0.0}), (Complex<double>{0, -pi}));
  EXPECT_EQ(log_of(Complex<double>{-0.0, 0.0}).imag, pi);
  EXPECT_EQ(log_of(Complex<double>{-kInfinity, kInfinity}), (Complex<double>{kInfinity, 3 * pi / 4}));
  EXPECT_EQ(sqrt_of(Complex<double>{-4, 0.0}), (Complex<double>{0, 2}));
  EXPECT_EQ(sqrt_of(Complex<double>{-4, -0.0}), (Complex<double>{0, -2}));
}

TEST(ComplexMath, NeitherSquaresNorPowersOverflowOnTheWay) {
  EXPECT_EQ(modulus_of(Complex<double>{0x3p1000, 0x4p1000}), 0x5p1000);
  EXPECT_EQ(modulus_of(Complex<double>{0x3p-1074, 0x4p-1074}), 0x5p-1074);
  EXPECT_EQ(modulus_of(Complex<float>{0x3p120F, 0x4p120F}), 0x5p120F);
  EXPECT_EQ(sqrt_of(Complex<double>{0, 0x2p1000}), (Complex<double>{0x1p500, 0x1p500}));
  // exp(800) is beyond double; its product with the sine is not.
  const Complex<double> power = exp_of(Complex<double>{800, 0x1p-200});
  EXPECT_EQ(power.real, kInfinity);
  EXPECT_NEAR(power.imag / std::exp(800 - 200 * std::numbers::ln2), 1, 1e-12);
}

/// The double that comes nearest to a multiple of pi / 2.
TEST(ComplexMath, AnglesAreReducedExactly) {
  const auto worst = sine_cosine_of<DoubleDouble>(6381956970095103.0 * 0x1p797);
  EXPECT_DOUBLE_EQ(to_double(worst.cosine), -4.6871659242546277e-19);
  EXPECT_EQ(to_double(worst.sine), 1);
}

}  // namespace
}  // namespace penstock::ops
