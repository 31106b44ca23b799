#pragma once

// Sines and cosines of any angle, and the angle of any point, in double: within one unit in the last place, with the
// same bits on every processor (math.h).

#include <array>
#include <bit>
#include <cstdint>

#include "ops/exact.h"
#include "ops/math.h"

namespace penstock::ops {

/// Whether the sign says so, of zeros too.
[[gnu::always_inline]] constexpr bool is_negative(double x) noexcept {
  return std::bit_cast<std::uint64_t>(x) >> 63 != 0;
}

/// The bits of 2 / pi behind its point, after 64 zeros: as many as the largest double needs.
inline constexpr std::array<std::uint64_t, 21> kTwoOverPi = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41,
    0x3991D639835339F4, 0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D};

/// What an angle is beyond a number of quarter turns, and that number modulo 4. At most an eighth of a turn.
struct WithinQuarter {
  DoubleDouble radians;
  double turns;  ///< the same, to 53 bits
  unsigned quarter;
};

/// 64 bits of 2 / pi.
[[gnu::always_inline]] constexpr std::uint64_t two_over_pi(unsigned first_bit) noexcept {
  const unsigned shift = first_bit % 64;
  return kTwoOverPi[first_bit / 64] << shift | kTwoOverPi[first_bit / 64 + 1] >> 1 >> (63 - shift);
}

/// A number of turns, a fraction of 128 bits above 0 and at most an eighth.
[[gnu::always_inline]] constexpr WithinQuarter within_quarter(std::uint64_t high, std::uint64_t low) noexcept {
  const auto zeros = static_cast<unsigned>(std::countl_zero(high));
  const std::uint64_t leading = high << zeros | low >> 1 >> (63 - zeros);
  const std::uint64_t following = (leading & 0x7FF) << 52 | (low << zeros) >> 12;
  const auto scale = power_of_two<double>(-53 - static_cast<std::int64_t>(zeros));
  const double turns = static_cast<double>(static_cast<std::int64_t>(leading >> 11)) * scale;
  const double rest = static_cast<double>(static_cast<std::int64_t>(following)) * (scale * 0x1p-63);
  const DoubleDouble radians = product_of(turns, 0x1.921fb54442d18p2);
  return {joined(radians.high, radians.low + (turns * 0x1.1a62633145c07p-52 + rest * 0x1.921fb54442d18p2)), turns, 0};
}

/// Of an angle above pi / 4, by the bits of 2 / pi that matter for it (Payne and Hanek). The nearest that a double
/// comes to a multiple of pi / 2 is 2^-61 of itself, so that 64 of 128 bits are left in the worst case.
[[gnu::always_inline]] constexpr WithinQuarter reduced(double angle) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(angle);
  const std::uint64_t mantissa = (bits & 0xFFFFFFFFFFFFF) | std::uint64_t{1} << 52;
  // The angle is mantissa 2^(exponent - 1075), and bits of 2 / pi that make whole turns of that are left out.
  const auto first_bit = static_cast<unsigned>(bits >> 52) - 1075 - 2 + 64;
  const std::uint64_t middle = mantissa * two_over_pi(first_bit + 64);
  const std::uint64_t low = middle + multiply_high(mantissa, two_over_pi(first_bit + 128));
  const std::uint64_t high =
      mantissa * two_over_pi(first_bit) + multiply_high(mantissa, two_over_pi(first_bit + 64)) + (low < middle ? 1 : 0);
  const std::uint64_t quarter = (high + (std::uint64_t{1} << 61)) >> 62;
  const std::uint64_t rest = high - (quarter << 62);
  const bool negative = rest >> 63 != 0;
  WithinQuarter out = negative ? within_quarter(~rest + (low == 0 ? 1 : 0), ~low + 1) : within_quarter(rest, low);
  out.quarter = static_cast<unsigned>(quarter & 3);
  return negative ? WithinQuarter{-out.radians, -out.turns, out.quarter} : out;
}

/// Of any finite angle in radians, as numbers of either precision: double's are within 2 units in the last place.
template <class Number>
[[gnu::always_inline]] constexpr SineCosine<Number> sine_cosine_of(double angle) noexcept {
  using M = MathOf<double>;
  const double size = __builtin_fabs(angle);
  const WithinQuarter in =
      size > 0x1.921fb54442d18p-1 ? reduced(size) : WithinQuarter{{size}, size * 0x1.45f306dc9c883p-3, 0};
  const double r = in.radians.high;
  const double z = in.turns * in.turns;
  const double sine_rest = in.turns * z * M::sine_rest(z);
  const double cosine_rest = z * z * M::cosine_rest(z);
  Number sine{};
  Number cosine{};
  if constexpr (sizeof(Number) == sizeof(double)) {
    sine = r + sine_rest;
    cosine = 1 - (r * r * 0.5 - cosine_rest);
  } else {
    const DoubleDouble square = by_power(product_of(r, r), 0.5);
    const DoubleDouble most = joined(1, -square.high);
    sine = joined(r, in.radians.low + sine_rest);
    cosine = joined(most.high, most.low + (cosine_rest - (square.low + r * in.radians.low)));
  }
  const bool odd = (in.quarter & 1) != 0;
  const Number first = odd ? cosine : sine;
  const Number second = odd ? sine : cosine;
  return {(in.quarter >= 2) != is_negative(angle) ? -first : first,
          in.quarter == 1 || in.quarter == 2 ? -second : second};
}

/// (atan(t) - t) / t^3 of z = t^2, for |t| <= tan(pi / 8).
[[gnu::always_inline]] constexpr double arc_rest(double z) noexcept {
  double p = -0x1.25be937c02d92p-6;
  p = p * z + 0x1.37fd71bfdf74fp-5;
  p = p * z - 0x1.9ce2fb6b7acabp-5;
  p = p * z + 0x1.df130a544b771p-5;
  p = p * z - 0x1.10ebfcf410602p-4;
  p = p * z + 0x1.3b111f6d5d2acp-4;
  p = p * z - 0x1.745cf93bdefa0p-4;
  p = p * z + 0x1.c71c70e9909dbp-4;
  p = p * z - 0x1.24924922b6ea5p-3;
  p = p * z + 0x1.9999999995a0bp-3;
  return p * z - 0x1.555555555553ep-2;
}

/// The tangent of an angle below pi / 4, or of what it lacks to pi / 4 where that is nearer, then below 0.
struct Tangent {
  DoubleDouble value;
  bool from_diagonal;
};
[[gnu::always_inline]] constexpr Tangent tangent_of(double small, double large) noexcept {
  if (small > 0x1.a827999fcef32p-2 * large) return {sum_of(small, -large) / sum_of(large, small), true};
  // Products of what is about subnormal are not exact; and nothing is to be added to a quotient so small.
  if (small < 0x1p-900) return {{small / large}, false};
  return {DoubleDouble{small} / DoubleDouble{large}, false};
}

/// The angle of (x, y) from the positive x axis, in [-pi, pi], as C's atan2(y, x). Both are finite and not both 0.
[[gnu::always_inline]] constexpr double angle_of(double x, double y) noexcept {
  const double x_size = __builtin_fabs(x);
  const double y_size = __builtin_fabs(y);
  const bool steep = y_size > x_size;
  const double size = steep ? y_size : x_size;
  // A smaller part whose quotient does not vanish loses no bits.
  const double scale = size > 0x1p900 ? 0x1p-600 : size < 0x1p-400 ? 0x1p600 : 1;
  const auto [t, from_diagonal] = tangent_of((steep ? x_size : y_size) * scale, size * scale);
  const double z = t.high * t.high;
  const double rest = t.high * z * arc_rest(z) + t.low / (1 + z);
  // The angle is that from the nearest of eight directions, which are pi / 4 apart, and that direction's.
  const double to_axis = from_diagonal ? 1 : 0;
  const double upward = steep ? 2 - to_axis : to_axis;
  const double direction = is_negative(x) ? 4 - upward : upward;
  const double side = steep != is_negative(x) ? -1 : 1;
  const DoubleDouble sum = joined(direction * 0x1.921fb54442d18p-1, side * t.high);
  return __builtin_copysign(sum.high + (sum.low + (side * rest + direction * 0x1.1a62633145c07p-55)), y);
}

}  // namespace penstock::ops
