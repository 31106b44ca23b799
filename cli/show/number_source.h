#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "archive/inspect/elements.h"
#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::cli {

/// The elements of a tensor as numbers, from front to back in C order, read a few at a time. Complex ones are their
/// absolute values. Not thread-safe.
class NumberSource {
 public:
  /// `lazy` is the entry of that number, or a slice of it. A slice of a deflated tensor is loaded as a whole.
  NumberSource(const Archive& archive, std::size_t entry, const LazyTensor& lazy);

  /// The next elements, each less base().
  void read(std::span<double> out);
  /// What is taken from each element before it becomes a double. Not 0 only for large integers of 64 bits, whose
  /// differences a double holds where it does not hold them.
  long double base() const noexcept { return base_; }
  /// Call when all elements were read: verifies recorded checksums.
  void finish() const;

 private:
  void refill();
  std::span<const std::byte> next_bytes();
  void convert(std::span<const std::byte> bytes);

  DType dtype_;
  std::int64_t count_;
  std::int64_t next_ = 0;  ///< element that the next refill begins with
  std::vector<double> numbers_;
  std::size_t used_ = 0;
  long double base_ = 0;

  std::optional<archive::ElementFiles> files_;
  std::optional<archive::Elements> elements_;
  archive::Elements::Scratch scratch_;
  std::optional<archive::Elements::Cursor> cursor_;
  std::optional<LazyTensor> slice_;
  Tensor loaded_;  ///< in place of slice_
  Tensor piece_;
};

}  // namespace penstock::cli
