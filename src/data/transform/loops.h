#pragma once

// The arithmetic of transforms over elements that lie one behind the other. Each loop is compiled twice from one
// source, for the baseline and for AVX2, and gives the same values on both.

#include <array>
#include <cstddef>

#include "penstock/dtype.h"

namespace penstock::data {

/// What a loop takes besides its elements.
struct Operands {
  /// Of a parameter: a value for each element, or one for all of them (`single`). In the type of the elements.
  const std::byte* mean = nullptr;
  const std::byte* std = nullptr;
  bool single = true;
  /// Of a constant, in the type of the elements: a factor, or the lower and the upper bound.
  std::array<std::byte, 8> low = {};
  std::array<std::byte, 8> high = {};
};

/// `from` and `to` need no alignment and do not overlap.
using Loop = void (*)(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands);

// Null for a type that has no such loop: arithmetic is there for float32 and float64 (smaller floats pass through
// float32, as in PyTorch), clamp for them and for integers.
Loop multiply_loop(DType::Code type) noexcept;   ///< x * low
Loop subtract_loop(DType::Code type) noexcept;   ///< x - mean
Loop divide_loop(DType::Code type) noexcept;     ///< x / std
Loop normalize_loop(DType::Code type) noexcept;  ///< (x - mean) / std
Loop clamp_loop(DType::Code type) noexcept;      ///< NaN stays NaN

// The commonest chain at once, from elements of type `from` to float32, so that they pass through the processor's
// registers alone. Null where `from` has no such loop.
Loop scale_to_float_loop(DType::Code from) noexcept;      ///< float(x) * low
Loop normalize_to_float_loop(DType::Code from) noexcept;  ///< (float(x) * low - mean) / std

}  // namespace penstock::data
