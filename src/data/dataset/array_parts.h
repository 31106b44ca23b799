#pragma once

// Parts of arrays along their dimension 0: what slices and windows are made of. Several arrays, such as those of the
// files of a corpus, count as one whose rows are numbered from array to array.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset/sample_array.h"
#include "data/sample/layout.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Arrays of one dtype and shape of rows, whose parts along dimension 0 are samples. Immutable.
class ArrayParts {
 public:
  /// kUnsupported where a part would be many reads (InFile has no gaps).
  explicit ArrayParts(SampleArray array);
  /// All arrays of these, of which there is one at least. kDTypeMismatch and kShapeMismatch where rows differ;
  /// kUnsupported where several arrays do not lie without gaps.
  static ArrayParts joined(std::span<const std::shared_ptr<const ArrayParts>> parts);

  /// Of all arrays together.
  std::int64_t rows() const noexcept { return ends_.back(); }
  std::size_t arrays() const noexcept { return arrays_.size(); }
  /// Which array a row is of.
  std::size_t array_of(std::int64_t row) const noexcept;
  /// Where the rows of an array begin.
  std::int64_t begin(std::size_t array) const noexcept { return array == 0 ? 0 : ends_[array - 1]; }
  std::int64_t end(std::size_t array) const noexcept { return ends_[array]; }

  /// SampleArray::is_at_hand of so many rows; false for rows of several arrays.
  bool are_at_hand(std::int64_t begin, std::int64_t rows, io::ResidentPages& pages) const noexcept;
  const DType& dtype() const noexcept { return arrays_[0].dtype; }
  /// Of all arrays, for errors: "train_0.bin and 3 more".
  std::string name() const;
  const HeldFile& file(std::size_t array) const noexcept { return *arrays_[array].file; }
  /// Whether rows and their elements lie one behind the other, in each array.
  bool contiguous() const noexcept { return contiguous_; }
  /// Bytes of the elements of a row.
  std::uint64_t row_bytes() const noexcept { return row_bytes_; }
  /// Bytes from one row to the next.
  std::uint64_t step() const noexcept { return step_; }
  /// Where the part begins that begins with row `row`; nowhere for rows without elements.
  Payload at(std::int64_t row) const { return at(array_of(row), row); }
  /// The same of a row that may be behind the last one of its array.
  Payload at(std::size_t array, std::int64_t row) const;
  /// What a part of so many rows is.
  TensorLayout layout(std::int64_t rows) const;
  /// All arrays: their name, with that of a tensor in a file of several.
  std::string describe() const;
  /// "tokens.bin[10:25]", or "a.bin[90:] to b.bin[:5]".
  std::string describe(std::int64_t begin, std::int64_t length) const;

 private:
  ArrayParts() = default;

  std::vector<SampleArray> arrays_;
  std::vector<std::int64_t> ends_;  ///< of the rows of each
  std::uint64_t row_bytes_ = 0;
  std::uint64_t step_ = 0;
  bool contiguous_ = false;
};

/// The arrays that `dataset` has the rows of. kInvalidArgument where it has none, by a text that begins with
/// `taken_of`: what is taken of what. The errors of ArrayParts.
ArrayParts arrays_of(const Dataset& dataset, std::string_view taken_of);

}  // namespace penstock::data
