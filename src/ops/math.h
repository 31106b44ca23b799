#pragma once

// exp, log, tanh and sine of float and double by arithmetic alone: the same bits on every processor, because nothing
// here may be contracted to fused operations, and loops over them vectorise, because every case is computed and
// then chosen. The polynomials are minimax fits on the intervals named; results are within 3 units in the last place.

#include <bit>
#include <cstdint>

namespace penstock::ops {

template <class Real>
struct MathOf;

template <>
struct MathOf<float> {
  using Bits = std::uint32_t;
  using Int = std::int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Int kBias = 127;
  /// Adding it rounds to an integer, which is then in the low bits.
  static constexpr float kRounder = 0x1.8p23F;
  static constexpr float kExpLow = -105.0F;
  static constexpr float kExpHigh = 89.0F;
  static constexpr float kTanhHigh = 20.0F;
  static constexpr float kLn2High = 0x1.63p-1F;
  static constexpr float kLn2Low = -0x1.bd0106p-13F;

  /// (expm1(r) - r) / r^2 for |r| <= ln(2) / 2.
  static constexpr float expm1_rest(float r) noexcept {
    float p = 0x1.6d754ep-10F;
    p = p * r + 0x1.120b72p-7F;
    p = p * r + 0x1.5554b8p-5F;
    p = p * r + 0x1.5554dcp-3F;
    return p * r + 0.5F;
  }
  /// (log((1 + s) / (1 - s)) - 2 s) / s^3 of z = s^2, for |s| <= 0.1716.
  static constexpr float log_rest(float z) noexcept {
    float p = 0x1.ddd97cp-3F;
    p = p * z + 0x1.245c08p-2F;
    p = p * z + 0x1.9999ecp-2F;
    return p * z + 0x1.555554p-1F;
  }
  /// sin(2 pi x) / x of z = x^2, for |x| <= 1/8.
  static constexpr float sine(float z) noexcept {
    float p = 0x1.4bc89ap5F;
    p = p * z - 0x1.32ca9ep6F;
    p = p * z + 0x1.466bbap6F;
    p = p * z - 0x1.4abbcep5F;
    return p * z + 0x1.921fb6p2F;
  }
  /// cos(2 pi x) of z = x^2, for |x| <= 1/8.
  static constexpr float cosine(float z) noexcept {
    float p = 0x1.d9c364p5F;
    p = p * z - 0x1.55c57cp6F;
    p = p * z + 0x1.03c1dcp6F;
    p = p * z - 0x1.3bd3ccp4F;
    return p * z + 1.0F;
  }
};

template <>
struct MathOf<double> {
  using Bits = std::uint64_t;
  using Int = std::int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Int kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kExpLow = -747.0;
  static constexpr double kExpHigh = 710.0;
  static constexpr double kTanhHigh = 44.0;
  static constexpr double kLn2High = 0x1.62e42feep-1;
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

  static constexpr double expm1_rest(double r) noexcept {
    double p = 0x1.1f8b4e60cfa84p-29;
    p = p * r + 0x1.af4dea330149dp-26;
    p = p * r + 0x1.27e4cccd8578ep-22;
    p = p * r + 0x1.71de023130627p-19;
    p = p * r + 0x1.a01a01acfa9b3p-16;
    p = p * r + 0x1.a01a01abe825cp-13;
    p = p * r + 0x1.6c16c16c151fep-10;
    p = p * r + 0x1.11111111100dbp-7;
    p = p * r + 0x1.5555555555558p-5;
    p = p * r + 0x1.5555555555557p-3;
    return p * r + 0.5;
  }
  static constexpr double log_rest(double z) noexcept {
    double p = 0x1.0c0b494096fe5p-3;
    p = p * z + 0x1.0fbdce3bf15b2p-3;
    p = p * z + 0x1.3b1c3d5139c43p-3;
    p = p * z + 0x1.745cf8dc3c32ap-3;
    p = p * z + 0x1.c71c7201c1d7cp-3;
    p = p * z + 0x1.24924924768bfp-2;
    p = p * z + 0x1.9999999999a39p-2;
    return p * z + 0x1.5555555555555p-1;
  }
  /// (sine(z) - 2 pi) / z.
  static constexpr double sine_rest(double z) noexcept {
    double p = -0x1.6c5b93983c0b1p-1;
    p = p * z + 0x1.e8eed159ae936p1;
    p = p * z - 0x1.e3074b502de1fp3;
    p = p * z + 0x1.50783485cc006p5;
    p = p * z - 0x1.32d2cce62ac24p6;
    p = p * z + 0x1.466bc6775aad9p6;
    return p * z - 0x1.4abbce625be53p5;
  }
  static constexpr double sine(double z) noexcept { return sine_rest(z) * z + 0x1.921fb54442d18p2; }
  /// (cosine(z) - 1 + 2 pi^2 z) / z^2.
  static constexpr double cosine_rest(double z) noexcept {
    double p = -0x1.b264cc8f5a8a1p0;
    p = p * z + 0x1.f9cc4154b7f1bp2;
    p = p * z - 0x1.a6d1ec795faf9p4;
    p = p * z + 0x1.e1f50683565a9p5;
    p = p * z - 0x1.55d3c7e3c90fdp6;
    return p * z + 0x1.03c1f081b5aacp6;
  }
  static constexpr double cosine(double z) noexcept { return (cosine_rest(z) * z - 0x1.3bd3cc9be45dep4) * z + 1.0; }
};

/// x = n ln(2) + r with |r| <= ln(2) / 2, and expm1(r). NaN gives any n and NaN.
template <class Real>
struct Split {
  typename MathOf<Real>::Int n;
  Real expm1;
};

template <class Real>
[[gnu::always_inline]] constexpr Split<Real> split(Real x) noexcept {
  using M = MathOf<Real>;
  constexpr Real log2e = static_cast<Real>(0x1.71547652b82fep0);
  const Real rounded = x * log2e + M::kRounder;
  const Real n = rounded - M::kRounder;
  const Real r = (x - n * M::kLn2High) - n * M::kLn2Low;
  const auto bits =
      std::bit_cast<typename M::Bits>(rounded) - std::bit_cast<typename M::Bits>(static_cast<Real>(M::kRounder));
  return {static_cast<typename M::Int>(bits), r + r * r * M::expm1_rest(r)};
}

/// 2^n where that is a normal number.
template <class Real>
[[gnu::always_inline]] constexpr Real power_of_two(typename MathOf<Real>::Int n) noexcept {
  using Bits = typename MathOf<Real>::Bits;
  return std::bit_cast<Real>(static_cast<Bits>(n + MathOf<Real>::kBias) << MathOf<Real>::kMantissa);
}

template <class Real>
[[gnu::always_inline]] constexpr Real exp_of(Real x) noexcept {
  using M = MathOf<Real>;
  const Real low = x < M::kExpLow ? M::kExpLow : x;
  const Real inside = low > M::kExpHigh ? M::kExpHigh : low;
  const Split<Real> parts = split(inside);
  // In two steps, so that neither power is out of range and a subnormal result is rounded once.
  const auto half = parts.n >> 1;
  return (parts.expm1 + Real{1}) * power_of_two<Real>(half) * power_of_two<Real>(parts.n - half);
}

template <class Real>
[[gnu::always_inline]] constexpr Real tanh_of(Real x) noexcept {
  using M = MathOf<Real>;
  using Bits = typename M::Bits;
  constexpr Bits sign_bit = Bits{1} << (sizeof(Bits) * 8 - 1);
  const Bits sign = std::bit_cast<Bits>(x) & sign_bit;
  const Real doubled = 2 * std::bit_cast<Real>(std::bit_cast<Bits>(x) & ~sign_bit);
  const Real inside = doubled > M::kTanhHigh ? M::kTanhHigh : doubled;
  const Split<Real> parts = split(inside);
  const Real scale = power_of_two<Real>(parts.n);
  const Real expm1 = scale * parts.expm1 + (scale - Real{1});
  return std::bit_cast<Real>(std::bit_cast<Bits>(expm1 / (expm1 + Real{2})) | sign);
}

/// m 2^exponent with m between the roots of 1/2 and 2.
template <class Real>
struct AboutOne {
  Real m;
  typename MathOf<Real>::Int exponent;
};

/// Of a normal number above 0.
template <class Real>
[[gnu::always_inline]] constexpr AboutOne<Real> about_one(Real normal) noexcept {
  using M = MathOf<Real>;
  using Bits = typename M::Bits;
  constexpr Real root_half = static_cast<Real>(0x1.6a09e667f3bcdp-1);
  const Bits above = std::bit_cast<Bits>(normal) - std::bit_cast<Bits>(root_half);
  const auto exponent = static_cast<typename M::Int>(above) >> M::kMantissa;
  return {std::bit_cast<Real>(std::bit_cast<Bits>(normal) - (static_cast<Bits>(exponent) << M::kMantissa)), exponent};
}

/// log(1 + f) + high + low, for 1 + f between the roots of 1/2 and 2; `high` is a multiple of kLn2High, `low` below its
/// last place.
template <class Real>
[[gnu::always_inline]] constexpr Real log_above_one(Real f, Real high, Real low) noexcept {
  const Real s = f / (Real{2} + f);
  const Real z = s * s;
  const Real half_square = f * f * static_cast<Real>(0.5);
  const Real rest = s * (half_square + z * MathOf<Real>::log_rest(z)) + low;
  return high - ((half_square - rest) - f);
}

template <class Real>
[[gnu::always_inline]] constexpr Real log_of(Real x) noexcept {
  using M = MathOf<Real>;
  using Bits = typename M::Bits;
  constexpr Real infinity = std::bit_cast<Real>(static_cast<Bits>(2 * M::kBias + 1) << M::kMantissa);
  constexpr Real smallest_normal = std::bit_cast<Real>(Bits{1} << M::kMantissa);
  const bool tiny = x < smallest_normal;
  const Real normal = x * (tiny ? power_of_two<Real>(M::kMantissa) : Real{1});
  const AboutOne<Real> parts = about_one(normal);
  const Real e = static_cast<Real>(static_cast<std::int32_t>(parts.exponent) - (tiny ? M::kMantissa : 0));
  const Real finite = log_above_one(parts.m - Real{1}, e * M::kLn2High, e * M::kLn2Low);
  const Real of_zero = x == Real{0} ? -infinity : finite;
  const Real of_negative = x < Real{0} ? infinity - infinity : of_zero;
  return x < infinity ? of_negative : x;
}

template <class Real>
struct SineCosine {
  Real sine;
  Real cosine;
};

/// Of the angle 2 pi u, for u in [0, 1].
template <class Real>
[[gnu::always_inline]] constexpr SineCosine<Real> sine_cosine_of_turns(Real u) noexcept {
  using M = MathOf<Real>;
  const Real rounded = 4 * u + M::kRounder;
  const auto quarter = std::bit_cast<typename M::Bits>(rounded) & 3U;
  const Real x = u - (rounded - M::kRounder) * static_cast<Real>(0.25);
  const Real z = x * x;
  const Real sine = x * M::sine(z);
  const Real cosine = M::cosine(z);
  const bool odd = (quarter & 1U) != 0;
  const Real first = odd ? cosine : sine;
  const Real second = odd ? sine : cosine;
  return {quarter >= 2 ? -first : first, quarter == 1 || quarter == 2 ? -second : second};
}

/// Rounded to nearest.
template <class Real>
[[gnu::always_inline]] constexpr Real sqrt_of(Real x) noexcept {
  if constexpr (sizeof(Real) == sizeof(float)) {
    return __builtin_sqrtf(x);
  } else {
    return __builtin_sqrt(x);
  }
}

}  // namespace penstock::ops
