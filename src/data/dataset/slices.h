#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/dataset/array_parts.h"
#include "penstock/dataset.h"
#include "penstock/tensor.h"

namespace penstock::data {

/// Where slices of an array lie along its dimension 0. Immutable; copies share the numbers.
class SliceTable {
 public:
  /// Of int64: where each slice starts, and how long it is. Without lengths, slice i lies from starts[i] to
  /// starts[i + 1], so that there is one start more. The errors of `slices`, for an array of so many rows.
  SliceTable(Tensor starts, Tensor lengths, std::int64_t rows, const std::string& name);
  /// Keeps no lengths where each slice begins where the one before ends.
  static SliceTable of(std::span<const std::int64_t> starts, std::span<const std::int64_t> lengths, std::int64_t rows,
                       const std::string& name);

  std::int64_t size() const noexcept { return starts_.shape()[0] - (lengths_.defined() ? 0 : 1); }
  std::int64_t begin(std::int64_t i) const noexcept { return first_[i]; }
  std::int64_t length(std::int64_t i) const noexcept {
    return length_ == nullptr ? first_[i + 1] - first_[i] : length_[i];
  }
  /// What the constructor was given.
  const Tensor& starts() const noexcept { return starts_; }
  const Tensor& lengths() const noexcept { return lengths_; }

 private:
  Tensor starts_;
  Tensor lengths_;
  const std::int64_t* first_;
  const std::int64_t* length_ = nullptr;
};

/// Arrays and their slices, which may go over the ends of arrays.
struct SlicedArrays {
  ArrayParts parts;
  SliceTable table;

  /// Each array as a slice.
  static SlicedArrays whole(ArrayParts parts);
  /// All slices of these, one behind the other, of which there is one at least. The errors of ArrayParts::joined.
  static SlicedArrays joined(std::span<const std::shared_ptr<const SlicedArrays>> parts);
};

/// What `slices` gives, of a table that is there.
Dataset sliced(SlicedArrays slices);
/// Of a table as SliceTable takes it, which `slices()->table` has: how slices are unpickled.
Dataset sliced(const Dataset& rows, const Tensor& starts, const Tensor& lengths);

}  // namespace penstock::data
