#pragma once

// What Statistics counts its numbers with.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::archive {

/// How many numbers lie in each of a few intervals of one width, made while the numbers come and before anybody knows
/// their range. Widths are powers of two and edges multiples of the width, so that when the range grows, neighbours are
/// joined and every count stays exact. Not thread-safe.
class Histogram {
 public:
  static constexpr std::size_t kBins = 64;
  /// Where numbers are counted: floor(x * scale) - first is the bin of x. The scale is a power of two.
  struct Scale {
    double scale = 1;
    std::int64_t first = 0;

    std::size_t bin_of(double x) const noexcept { return static_cast<std::size_t>(place_of(x, scale) - first); }
  };
  /// floor(x * scale), also where the product of a number below 0 is too small for a double.
  static std::int64_t place_of(double x, double scale) noexcept {
    const double at = x * scale;
    return at == 0 && x < 0 ? -1 : static_cast<std::int64_t>(std::floor(at));
  }

  /// Whether there is room for numbers from `low` to `high` already.
  bool covers(double low, double high) const noexcept { return !empty_ && low >= low_ && high <= high_; }
  /// Makes room for numbers from `low` to `high`, both finite.
  void cover(double low, double high);
  Scale scale() const noexcept;
  void add(std::size_t bin, std::uint64_t count) noexcept { counts_[bin] += count; }
  void merge(const Histogram& other);

  /// The interval i of the result is [begin + i * width, begin + (i + 1) * width).
  struct Bins {
    double begin = 0;
    double width = 0;
    std::vector<std::uint64_t> counts;
  };
  /// At most `most` intervals, of which the first and the last have numbers; none without numbers.
  Bins bins(std::size_t most) const;

 private:
  void rebase(int exponent, std::int64_t first);

  bool empty_ = true;
  int exponent_ = 0;        ///< the width is 2 to this
  std::int64_t first_ = 0;  ///< the lowest edge, in widths
  double low_ = 0;
  double high_ = 0;
  std::array<std::uint64_t, kBins> counts_{};
};

}  // namespace penstock::archive
