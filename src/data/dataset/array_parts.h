#pragma once

// Parts of an array along its dimension 0: what slices and windows are made of.

#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset/sample_array.h"
#include "data/sample/layout.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The array that `dataset` has the rows of. kInvalidArgument where it has none, by a text that begins with `taken_of`:
/// what is taken of what.
const SampleArray& array_of(const Dataset& dataset, std::string_view taken_of);

/// An array whose parts along dimension 0 are samples. Immutable.
class ArrayParts {
 public:
  /// kUnsupported where a part would be many reads (InFile has no gaps).
  explicit ArrayParts(SampleArray array);

  std::int64_t rows() const noexcept { return array_.shape[0]; }
  const DType& dtype() const noexcept { return array_.dtype; }
  const HeldFile& file() const noexcept { return *array_.file; }
  /// Whether rows and their elements lie one behind the other.
  bool contiguous() const noexcept { return contiguous_; }
  /// Bytes of the elements of a row.
  std::uint64_t row_bytes() const noexcept { return row_bytes_; }
  /// Bytes from one row to the next.
  std::uint64_t step() const noexcept { return step_; }
  /// Where the part begins that begins with row `row`; nowhere for rows without elements.
  Payload at(std::int64_t row) const;
  /// What a part of so many rows is.
  TensorLayout layout(std::int64_t rows) const;
  /// "tokens.bin[10:25]".
  std::string describe(std::int64_t begin, std::int64_t length) const;

 private:
  SampleArray array_;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t step_ = 0;
  bool contiguous_ = false;
};

}  // namespace penstock::data
