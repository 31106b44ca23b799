#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "penstock/tensor.h"

namespace penstock::cli {

/// What an element prints as. Numbers are shortest round-trip decimals; text and bytes are their characters; dates are
/// their integer with the unit; structures and opaque types are hexadecimal bytes.
enum class ElementClass { kBool, kInteger, kUnsigned, kReal, kComplex, kText, kHex };
ElementClass element_class(const DType& dtype) noexcept;

/// A contiguous host tensor's elements as text, by flat index.
class ElementPrinter {
 public:
  explicit ElementPrinter(const Tensor& tensor);
  std::string text(std::size_t index) const;
  /// For kReal and kComplex (real, imaginary), kInteger, kUnsigned.
  double real(std::size_t index) const;
  double imaginary(std::size_t index) const;
  std::int64_t integer(std::size_t index) const;
  std::uint64_t unsigned_integer(std::size_t index) const;
  ElementClass kind() const noexcept { return kind_; }

 private:
  std::string raw_text(std::size_t index) const;

  ElementClass kind_;
  Tensor raw_;   ///< as loaded
  Tensor wide_;  ///< numbers at a printable width: bool, int64, uint64, float32, float64, complex64, complex128
};

}  // namespace penstock::cli
