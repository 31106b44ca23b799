#pragma once

// Arithmetic of twice double's precision, with the same operators as double has, and the high half of a product of
// integers: by plain operations, none of which may be contracted to fused ones.

#include <cstdint>

#include "ops/math.h"

namespace penstock::ops {

/// The number high + low, where low is at most half a unit in high's last place.
struct DoubleDouble {
  double high;
  double low = 0;
};

/// The sum, exactly (Knuth).
[[gnu::always_inline]] constexpr DoubleDouble sum_of(double a, double b) noexcept {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

/// The sum, exactly, where |large| >= |small| or large is 0 (Dekker).
[[gnu::always_inline]] constexpr DoubleDouble joined(double large, double small) noexcept {
  const double sum = large + small;
  return {sum, small - (sum - large)};
}

/// a in two numbers of 26 bits, for |a| < 2^996, by 2^27 + 1 times a (Veltkamp).
[[gnu::always_inline]] constexpr DoubleDouble halves_of(double a) noexcept {
  const double scaled = 134217729.0 * a;
  const double high = scaled - (scaled - a);
  return {high, a - high};
}

/// The product, exactly where it is between 2^-960 and 2^1023 (Dekker).
[[gnu::always_inline]] constexpr DoubleDouble product_of(double a, double b) noexcept {
  const double product = a * b;
  const DoubleDouble x = halves_of(a);
  const DoubleDouble y = halves_of(b);
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

// Within 2^-102 of the exact results, where products of double are exact.

[[gnu::always_inline]] constexpr DoubleDouble operator-(DoubleDouble a) noexcept { return {-a.high, -a.low}; }

/// Of numbers with the same sign.
[[gnu::always_inline]] constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) noexcept {
  const DoubleDouble sum = sum_of(a.high, b.high);
  return joined(sum.high, sum.low + (a.low + b.low));
}

[[gnu::always_inline]] constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) noexcept {
  const DoubleDouble product = product_of(a.high, b.high);
  return joined(product.high, product.low + (a.high * b.low + a.low * b.high));
}

[[gnu::always_inline]] constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) noexcept {
  const double quotient = a.high / b.high;
  const DoubleDouble back = product_of(quotient, b.high);
  return {quotient, ((a.high - back.high) - back.low + (a.low - quotient * b.low)) / b.high};
}

[[gnu::always_inline]] constexpr DoubleDouble sqrt_of(DoubleDouble a) noexcept {
  const double root = a.high == 0 ? 0 : sqrt_of(a.high);
  const DoubleDouble back = product_of(root, root);
  return {root, root == 0 ? 0 : ((a.high - back.high) - back.low + a.low) / (2 * root)};
}

// What algorithms need beyond operators, for numbers of either precision.

/// Rounded; a zero keeps its sign.
[[gnu::always_inline]] constexpr double to_double(DoubleDouble a) noexcept {
  return __builtin_copysign(a.high + a.low, a.high);
}
[[gnu::always_inline]] constexpr double to_double(double a) noexcept { return a; }

/// Times a power of two.
[[gnu::always_inline]] constexpr DoubleDouble by_power(DoubleDouble a, double power) noexcept {
  return {a.high * power, a.low * power};
}
[[gnu::always_inline]] constexpr double by_power(double a, double power) noexcept { return a * power; }

/// The high 64 bits of the product, by halves.
[[gnu::always_inline]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t a_low = a & 0xFFFFFFFFU;
  const std::uint64_t a_high = a >> 32;
  const std::uint64_t b_low = b & 0xFFFFFFFFU;
  const std::uint64_t b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const std::uint64_t other = a_low * b_high + (middle & 0xFFFFFFFFU);
  return a_high * b_high + (middle >> 32) + (other >> 32);
}

}  // namespace penstock::ops
