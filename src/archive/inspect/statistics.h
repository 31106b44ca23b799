#pragma once

// `penstock stats`: what the numbers of a tensor are like. summary.h goes through an archive with it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "archive/inspect/histogram.h"
#include "penstock/dtype.h"

namespace penstock::archive {

/// What the elements of a numeric type are like. Mean and deviation are as exact as double where sums of squares would
/// overflow or cancel out, and the same for any number of threads that make parts of it.
class Statistics {
 public:
  /// Numeric (DType::is_numeric), or nothing but the number of elements is known.
  explicit Statistics(const DType& dtype);

  /// The next elements, as values in this machine's byte order; they need not be aligned.
  void add(std::span<const std::byte> elements);
  void merge(const Statistics& other);

  const DType& dtype() const noexcept { return dtype_; }
  std::int64_t count() const noexcept { return count_; }
  std::int64_t zeros() const noexcept { return zeros_; }
  /// Floats too close to 0 for the digits that their type has elsewhere (subnormal), zeros not among them.
  std::int64_t denormals() const noexcept { return denormals_; }
  /// A complex number counts as NaN where a part is, else as infinite where a part is.
  std::int64_t nans() const noexcept { return nans_; }
  std::int64_t positive_infinities() const noexcept { return positive_; }
  std::int64_t negative_infinities() const noexcept { return negative_; }
  bool is_ill() const noexcept { return nans_ + positive_ + negative_ > 0; }

  /// The rest is about the finite elements; of complex ones, about their absolute values.
  std::int64_t finite() const noexcept { return finite_; }
  double min() const noexcept { return min_; }
  double max() const noexcept { return max_; }
  /// Of integers, exactly; a uint64 is this as one.
  std::int64_t least() const noexcept { return least_; }
  std::int64_t greatest() const noexcept { return greatest_; }
  double mean() const noexcept { return static_cast<double>(mean_); }
  /// Of the population (NumPy's std, torch's with correction=0).
  double deviation() const noexcept;
  const Histogram& histogram() const noexcept { return histogram_; }

 private:
  struct Counts;
  void add_exactly(std::span<const std::byte> elements);
  bool add_floats(const std::byte* values, Counts& counts);
  bool add_block(const double* values, Counts& counts);
  void add_slowly(const double* values, std::size_t count, Counts& counts);
  void cover(double low, double high, Counts& counts);
  void extend(double low, double high);
  void combine(std::int64_t count, long double mean, long double squares);

  DType dtype_;
  double normal_;  ///< absolute values below are zeros and denormals
  std::int64_t count_ = 0;
  std::int64_t zeros_ = 0;
  std::int64_t denormals_ = 0;
  std::int64_t nans_ = 0;
  std::int64_t positive_ = 0;
  std::int64_t negative_ = 0;
  std::int64_t finite_ = 0;
  double min_ = 0;
  double max_ = 0;
  std::int64_t least_ = 0;
  std::int64_t greatest_ = 0;
  // Wider than double: squares of doubles neither overflow nor vanish.
  long double mean_ = 0;
  long double squares_ = 0;  ///< of distances from the mean
  Histogram histogram_;
};

}  // namespace penstock::archive
