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

/// floor(x * scale) of each number, plus the bits of kRounder.
template <class Vector, class Ints, class Number>
void place_bits(const Number* values, Number scale, Ints& bits) {
  Vector x;
  std::memcpy(&x, values, sizeof x);
  x *= scale;
  const Vector rounded = x + kRounder<Number>;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits += (rounded - kRounder<Number>) > x;  // -1 where it was rounded up
}

/// BlockLoops::place_doubles, place_floats: Int is as wide as Number, and the vectors have as many of them as Shorts.
template <class Vector, class Ints, class Shorts, class Int, class Number>
void place_pairs(const Number* values, Histogram::Scale scale, std::uint16_t* pairs) {
  Int rounder_bits = 0;
  std::memcpy(&rounder_bits, &kRounder<Number>, sizeof rounder_bits);
  const auto offset = static_cast<Int>(rounder_bits + scale.first);
  const auto factor = static_cast<Number>(scale.scale);
  for (std::size_t i = 0; i < kBlock / 2; i += sizeof(Vector) / sizeof(Number)) {
    Ints first;
    Ints second;
    place_bits<Vector>(values + i, factor, first);
    place_bits<Vector>(values + kBlock / 2 + i, factor, second);
    const Ints both = (first - offset) + (second - offset) * static_cast<Int>(Histogram::kBins);
    const Shorts narrow = __builtin_convertvector(both, Shorts);
    std::memcpy(pairs + i, &narrow, sizeof narrow);
  }
}

void place_doubles(const double* values, Histogram::Scale scale, std::uint16_t* pairs) {
  place_pairs<Four, FourInts, FourShorts, long long>(values, scale, pairs);
}

using Eight = float __attribute__((vector_size(32)));
using EightInts = std::int32_t __attribute__((vector_size(32)));
using EightShorts = std::uint16_t __attribute__((vector_size(16)));
using FourFloats = float __attribute__((vector_size(16)));
constexpr std::size_t kFloats = 8;

void scan_floats(const float* values, double middle, float normal, FloatScan& out) {
  Eight low;
  std::memcpy(&low, values, sizeof low);
  Eight high = low;
  EightInts small{};
  EightInts zeros{};
  std::array<Four, 2> sum{};
  std::array<Four, 2> squares{};
  for (std::size_t i = 0; i < kBlock; i += kFloats) {
    Eight x;
    std::memcpy(&x, values + i, sizeof x);
    low = x < low ? x : low;
    high = x > high ? x : high;
    small -= (x < normal) & (x > -normal);
    zeros -= x == 0;
    for (std::size_t k = 0; k < 2; ++k) {
      FourFloats half;
      std::memcpy(&half, values + i + k * kWidth, sizeof half);
      const Four distance = __builtin_convertvector(half, Four) - middle;
      sum[k] += distance;
      squares[k] += distance * distance;
    }
  }
  sum[0] += sum[1];
  squares[0] += squares[1];
  out = {low[0], high[0], sum_of(sum[0]), sum_of(squares[0]), 0, 0};
  for (std::size_t i = 0; i < kFloats; ++i) {
    out.low = low[i] < out.low ? low[i] : out.low;
    out.high = high[i] > out.high ? high[i] : out.high;
    out.small += small[i];
    out.zeros += zeros[i];
  }
}

void place_floats(const float* values, Histogram::Scale scale, std::uint16_t* pairs) {
  place_pairs<Eight, EightInts, EightShorts, std::int32_t>(values, scale, pairs);
}

constexpr std::int64_t kSignBit = std::int64_t{1} << 63;

/// A NaN or an infinity, or an overflow, makes a sum that is not finite.
void compare_block(const double* of_a, const double* of_b, double rtol, double atol, DifferenceSums& out) {
  const FourInts magnitude = FourInts{} + ~kSignBit;
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
    FourInts bits;
    std::memcpy(&bits, &d, sizeof bits);
    bits &= magnitude;
    std::memcpy(&d, &bits, sizeof d);
    std::memcpy(&bits, &b, sizeof bits);
    bits &= magnitude;
    std::memcpy(&b, &bits, sizeof b);
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

constexpr BlockLoops kLoops{scan_doubles, square_doubles, place_doubles, scan_floats, place_floats, compare_block};

}  // namespace
}  // namespace penstock::archive
