#pragma once

// The loops of block_loops.h, for the two sources that include this. Vectors are longer than a processor without AVX2
// has them; the compiler makes two instructions of one there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "archive/inspect/block_loops.h"

namespace penstock::archive {
namespace {

using Four = double __attribute__((vector_size(32)));
using FourInts = long long __attribute__((vector_size(32)));
using FourShorts = std::uint16_t __attribute__((vector_size(8)));
constexpr std::size_t kWidth = 4;

// Functions of the standard library would be compiled for AVX2 here, and perhaps be linked into the rest.
double largest(const Four& x) {
  const double first = x[0] > x[1] ? x[0] : x[1];
  const double last = x[2] > x[3] ? x[2] : x[3];
  return first > last ? first : last;
}
double sum_of(const Four& x) { return (x[0] + x[1]) + (x[2] + x[3]); }
std::int64_t sum_of(const FourInts& x) { return x[0] + x[1] + x[2] + x[3]; }

/// Without a NaN or an infinity the sum is finite, unless it overflows.
void scan_doubles(const double* values, double normal, DoubleScan& out) {
  Four low;
  std::memcpy(&low, values, sizeof low);
  Four high = low;
  std::array<Four, 2> sum{};
  FourInts small{};
  FourInts zeros{};
  for (std::size_t i = 0; i < kBlock; i += 2 * kWidth) {
    for (std::size_t k = 0; k < 2; ++k) {
      Four x;
      std::memcpy(&x, values + i + k * kWidth, sizeof x);
      low = x < low ? x : low;
      high = x > high ? x : high;
      sum[k] += x;
      small -= (x < normal) & (x > -normal);
      zeros -= x == 0;
    }
  }
  sum[0] += sum[1];
  out = {-largest(-low), largest(high), sum_of(sum[0]), sum_of(small), sum_of(zeros)};
}

void square_doubles(const double* values, double mean, double& out) {
  std::array<Four, 2> sum{};
  for (std::size_t i = 0; i < kBlock; i += 2 * kWidth) {
    for (std::size_t k = 0; k < 2; ++k) {
      Four x;
      std::memcpy(&x, values + i + k * kWidth, sizeof x);
      x -= mean;
      sum[k] += x * x;
    }
  }
  sum[0] += sum[1];
  out = sum_of(sum[0]);
}

/// A number of floating point in whose neighbourhood numbers are whole, so that adding it rounds to a whole number,
/// which is then in the low bits.
template <class Number>
constexpr Number kRounder = sizeof(Number) == sizeof(double) ? Number(0x1.8p52) : Number(0x1.8p23F);

/// floor(x * scale) of each number, plus the bits of kRounder. `width` is 1 / scale.
template <class Vector, class Ints, class Number>
void place_bits(const std::byte* values, Number scale, Number width, Ints& bits) {
  Vector x;
  std::memcpy(&x, values, sizeof x);
  const Vector rounded = x * scale + kRounder<Number>;
  std::memcpy(&bits, &rounded, sizeof bits);
  // -1 where it was rounded up. The product may have become -0, so x itself is compared.
  bits += x < width * (rounded - kRounder<Number>);
}

/// BlockLoops::place_doubles, place_floats: Int is as wide as Number, and the vectors have as many of them as Shorts.
template <class Vector, class Ints, class Shorts, class Int, class Number>
void place_pairs(const std::byte* values, Histogram::Scale scale, std::uint16_t* pairs) {
  Int rounder_bits = 0;
  std::memcpy(&rounder_bits, &kRounder<Number>, sizeof rounder_bits);
  const auto offset = static_cast<Int>(rounder_bits + scale.first);
  const auto factor = static_cast<Number>(scale.scale);
  const Number width = 1 / factor;
  for (std::size_t i = 0; i < kBlock / 2; i += sizeof(Vector) / sizeof(Number)) {
    Ints first;
    Ints second;
    place_bits<Vector>(values + i * sizeof(Number), factor, width, first);
    place_bits<Vector>(values + (kBlock / 2 + i) * sizeof(Number), factor, width, second);
    const Ints both = (first - offset) + (second - offset) * static_cast<Int>(Histogram::kBins);
    const Shorts narrow = __builtin_convertvector(both, Shorts);
    std::memcpy(pairs + i, &narrow, sizeof narrow);
  }
}

void place_doubles(const double* values, Histogram::Scale scale, std::uint16_t* pairs) {
  place_pairs<Four, FourInts, FourShorts, long long, double>(reinterpret_cast<const std::byte*>(values), scale, pairs);
}

using Eight = float __attribute__((vector_size(32)));
using EightInts = std::int32_t __attribute__((vector_size(32)));
using EightShorts = std::uint16_t __attribute__((vector_size(16)));
using FourFloats = float __attribute__((vector_size(16)));
constexpr std::size_t kFloats = 8;

// Vectors are given back by reference: by value would need AVX in the caller, too.

void to_absolute(Eight& x) {
  EightInts bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= 0x7FFFFFFF;
  std::memcpy(&x, &bits, sizeof x);
}

/// Four floats as doubles. GCC makes one instruction of this, and six of __builtin_convertvector.
void widen(const std::byte* floats, Four& out) {
  FourFloats x;
  std::memcpy(&x, floats, sizeof x);
  out = Four{x[0], x[1], x[2], x[3]};
}

void scan_floats(const std::byte* values, double middle, FloatScan& out) {
  Eight low;
  std::memcpy(&low, values, sizeof low);
  Eight high = low;
  Eight nearest = low;
  to_absolute(nearest);
  std::array<Four, 2> sum{};
  std::array<Four, 2> squares{};
  for (std::size_t i = 0; i < kBlock; i += kFloats) {
    const std::byte* const from = values + i * sizeof(float);
    Eight x;
    std::memcpy(&x, from, sizeof x);
    low = x < low ? x : low;
    high = x > high ? x : high;
    to_absolute(x);
    nearest = x < nearest ? x : nearest;
    for (std::size_t k = 0; k < 2; ++k) {
      Four distance;
      widen(from + k * kWidth * sizeof(float), distance);
      distance -= middle;
      sum[k] += distance;
      squares[k] += distance * distance;
    }
  }
  sum[0] += sum[1];
  squares[0] += squares[1];
  out = {low[0], high[0], nearest[0], sum_of(sum[0]), sum_of(squares[0])};
  for (std::size_t i = 1; i < kFloats; ++i) {
    out.low = low[i] < out.low ? low[i] : out.low;
    out.high = high[i] > out.high ? high[i] : out.high;
    out.nearest = nearest[i] < out.nearest ? nearest[i] : out.nearest;
  }
}

void count_small(const std::byte* floats, float normal, SmallCounts& out) {
  EightInts small{};
  EightInts zeros{};
  for (std::size_t i = 0; i < kBlock; i += kFloats) {
    Eight x;
    std::memcpy(&x, floats + i * sizeof(float), sizeof x);
    to_absolute(x);
    small -= x < normal;
    zeros -= x == 0;
  }
  out = {};
  for (std::size_t i = 0; i < kFloats; ++i) {
    out.small += small[i];
    out.zeros += zeros[i];
  }
}

void place_floats(const std::byte* floats, Histogram::Scale scale, std::uint16_t* pairs) {
  place_pairs<Eight, EightInts, EightShorts, std::int32_t, float>(floats, scale, pairs);
}

constexpr std::int64_t kSignBit = std::int64_t{1} << 63;

void to_absolute(Four& x) {
  FourInts bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= ~kSignBit;
  std::memcpy(&x, &bits, sizeof x);
}

/// A NaN or an infinity, or an overflow, makes a sum that is not finite.
void compare_block(const double* of_a, const double* of_b, double rtol, double atol, DifferenceSums& out) {
  Four max_absolute{};
  Four sum_absolute{};
  Four max_relative{};
  Four sum_relative{};
  FourInts different{};
  FourInts zeros{};
  for (std::size_t i = 0; i < kBlock; i += kWidth) {
    Four a;
    Four b;
    std::memcpy(&a, of_a + i, sizeof a);
    std::memcpy(&b, of_b + i, sizeof b);
    Four d = a - b;
    to_absolute(d);
    to_absolute(b);
    max_absolute = d > max_absolute ? d : max_absolute;
    sum_absolute += d;
    different -= d > atol + rtol * b;
    const FourInts zero = (b == 0) & (d != 0);
    zeros -= zero;
    const Four relative = (b == 0) ? Four{} : d / b;
    max_relative = relative > max_relative ? relative : max_relative;
    sum_relative += relative;
  }
  out = {largest(max_absolute), sum_of(sum_absolute), largest(max_relative),
         sum_of(sum_relative),  sum_of(different),    sum_of(zeros)};
}

/// A division takes as long as all else here, so four quotients are added up by one of them:
///     d0/b0 + d1/b1 + d2/b2 + d3/b3 = ((d0 b1 + d1 b0) b2 b3 + (d2 b3 + d3 b2) b0 b1) / (b0 b1 b2 b3)
/// Products of four floats neither overflow a double nor lose digits as denormal numbers.
template <bool is_exact>
bool compare_each_float(const std::byte* of_a, const std::byte* of_b, double rtol, double atol, double known,
                        DifferenceSums& out) {
  constexpr std::size_t kTogether = 4;
  constexpr std::size_t kFourFloats = kWidth * sizeof(float);
  Four max_absolute{};
  Four sum_absolute{};
  Four sum_relative{};
  FourInts different{};
  FourInts exceeding{};
  for (std::size_t at = 0; at < kBlock * sizeof(float); at += kTogether * kFourFloats) {
    std::array<Four, 2> sums;
    std::array<Four, 2> products;
    for (std::size_t pair = 0; pair < 2; ++pair) {
      std::array<Four, 2> d;
      std::array<Four, 2> b;
      for (std::size_t k = 0; k < 2; ++k) {
        const std::size_t from = at + (2 * pair + k) * kFourFloats;
        widen(of_a + from, d[k]);
        widen(of_b + from, b[k]);
        d[k] -= b[k];
        to_absolute(d[k]);
        to_absolute(b[k]);
        max_absolute = d[k] > max_absolute ? d[k] : max_absolute;
        sum_absolute += d[k];
        different -= is_exact ? d[k] > 0 : d[k] > atol + rtol * b[k];
        exceeding |= d[k] > known * b[k];
      }
      sums[pair] = d[0] * b[1] + d[1] * b[0];
      products[pair] = b[0] * b[1];
    }
    sum_relative += (sums[0] * products[1] + sums[1] * products[0]) / (products[0] * products[1]);
  }
  out = {largest(max_absolute), sum_of(sum_absolute), 0, sum_of(sum_relative), sum_of(different), 0};
  return sum_of(exceeding) != 0;
}

bool compare_floats(const std::byte* a, const std::byte* b, double rtol, double atol, double known,
                    DifferenceSums& out) {
  const bool is_exact = rtol == 0 && atol == 0;
  return is_exact ? compare_each_float<true>(a, b, rtol, atol, known, out)
                  : compare_each_float<false>(a, b, rtol, atol, known, out);
}

constexpr BlockLoops kLoops{scan_doubles, square_doubles, place_doubles, scan_floats,
                            count_small,  place_floats,   compare_block, compare_floats};

}  // namespace
}  // namespace penstock::archive
