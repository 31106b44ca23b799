#include "archive/inspect/histogram.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace penstock::archive {
namespace {

// Places of numbers are computed in double: within 2^50 widths they are exact. Widths stay normal numbers.
constexpr int kExact = 50;
constexpr int kLeastExponent = -1000;

std::int64_t place(double value, int exponent) { return Histogram::place_of(value, std::ldexp(1.0, -exponent)); }

/// The least width that puts [low, high] into `most` intervals.
int exponent_for(double low, double high, std::int64_t most, int least) {
  const double largest = std::max(std::fabs(low), std::fabs(high));
  int exponent = std::max(least, kLeastExponent);
  if (largest != 0) exponent = std::max(exponent, std::ilogb(largest) - kExact + 1);
  if (const double range = high / 2 - low / 2; range > 0) {
    exponent = std::max(exponent, std::ilogb(range) + 1 - std::ilogb(static_cast<double>(most)) - 1);
  }
  while (place(high, exponent) - place(low, exponent) >= most) ++exponent;
  return exponent;
}

}  // namespace

void Histogram::rebase(int exponent, std::int64_t first) {
  std::array<std::uint64_t, kBins> counts{};
  const int shift = std::min(exponent - exponent_, 63);
  for (std::size_t i = 0; i < kBins; ++i) {
    if (counts_[i] == 0) continue;
    // An arithmetic shift is the floor of a division by a power of two.
    counts[static_cast<std::size_t>(((first_ + static_cast<std::int64_t>(i)) >> shift) - first)] += counts_[i];
  }
  counts_ = counts;
  exponent_ = exponent;
  first_ = first;
}

void Histogram::cover(double low, double high) {
  if (covers(low, high)) return;
  low_ = empty_ ? low : std::min(low, low_);
  high_ = empty_ ? high : std::max(high, high_);
  const int exponent = exponent_for(low_, high_, kBins, empty_ ? kLeastExponent : exponent_);
  const std::int64_t first = place(low_, exponent);
  if (empty_) {
    exponent_ = exponent;
    first_ = first;
    empty_ = false;
  } else {
    rebase(exponent, first);
  }
}

Histogram::Scale Histogram::scale() const noexcept { return {std::ldexp(1.0, -exponent_), first_}; }

void Histogram::merge(const Histogram& other) {
  if (other.empty_) return;
  cover(other.low_, other.high_);
  Histogram aligned = other;
  if (aligned.exponent_ > exponent_) rebase(aligned.exponent_, place(low_, aligned.exponent_));
  aligned.rebase(exponent_, first_);
  for (std::size_t i = 0; i < kBins; ++i) counts_[i] += aligned.counts_[i];
}

Histogram::Bins Histogram::bins(std::size_t most) const {
  if (empty_) return {};
  Histogram narrow = *this;
  const int exponent = exponent_for(low_, high_, static_cast<std::int64_t>(most), exponent_);
  narrow.rebase(exponent, place(low_, exponent));
  const auto used = static_cast<std::size_t>(place(high_, exponent) - narrow.first_ + 1);
  // The lowest edge may be that of the power of two behind the least double.
  const double begin = std::max(std::ldexp(static_cast<double>(narrow.first_), exponent), -DBL_MAX);
  return {begin, std::ldexp(1.0, exponent),
          std::vector(narrow.counts_.begin(), narrow.counts_.begin() + static_cast<std::ptrdiff_t>(used))};
}

}  // namespace penstock::archive
