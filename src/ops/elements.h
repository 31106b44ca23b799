#pragma once

// Elements as text: for repr, `penstock cat` and error messages.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "penstock/tensor.h"

namespace penstock::ops {

/// What an element prints as. Numbers are shortest round-trip decimals; text and bytes are their characters; dates are
/// as NumPy writes them, and durations the integer of their unit, both "NaT" where there is none; structures and opaque
/// types are hexadecimal bytes.
enum class ElementClass { kBool, kInteger, kUnsigned, kReal, kComplex, kText, kDate, kDuration, kHex };
ElementClass element_class(const DType& dtype) noexcept;

/// The part of a tensor, loaded or not, of at most `most` elements, in which element `index` of C order lies. `index`
/// becomes its number there.
template <class T>
T piece_around(T whole, std::int64_t& index, std::int64_t most) {
  while (whole.shape().numel() > most) {
    const std::int64_t inner = whole.shape().numel() / whole.shape()[0];
    const std::int64_t rows = std::max<std::int64_t>(most / inner, 1);
    const std::int64_t first = index / inner / rows * rows;
    index -= first * inner;
    whole = rows > 1 ? whole.slice(0, first, first + rows) : whole.select(0, first);
  }
  return whole;
}

/// A host tensor's elements as text, by index in C order. Those around the last one that was asked for are kept in a
/// printable form, so that going through them in order is quick and takes little memory, however large the tensor or
/// what its strides repeat.
class ElementPrinter {
 public:
  explicit ElementPrinter(const Tensor& tensor) : kind_(element_class(tensor.dtype())), tensor_(tensor) {}
  std::string text(std::size_t index);
  /// For kReal and kComplex (real, imaginary), kInteger and kDuration, kUnsigned.
  double real(std::size_t index);
  double imaginary(std::size_t index);
  /// One of these as text, at the width of the elements.
  std::string decimal(double value) const;
  std::int64_t integer(std::size_t index);
  std::uint64_t unsigned_integer(std::size_t index);
  ElementClass kind() const noexcept { return kind_; }

 private:
  /// The place of the element in `raw_` and `wide_`, which hold it from here on.
  std::size_t place(std::size_t index);
  std::string raw_text(std::size_t index);

  ElementClass kind_;
  Tensor tensor_;
  std::size_t begin_ = 0;  ///< index of the first element in raw_
  std::size_t end_ = 0;
  Tensor raw_;   ///< as loaded, contiguous
  Tensor wide_;  ///< numbers at a printable width: bool, int64, uint64, float32, float64, complex64, complex128
};

}  // namespace penstock::ops
