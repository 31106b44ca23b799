#pragma once

// The table of types of safetensors.

#include <span>
#include <string_view>

#include "penstock/dtype.h"

namespace penstock::format {

/// A type as safetensors names it. Source: `Dtype` in safetensors/src/tensor.rs, 0.8.
struct SafetensorsDType {
  std::string_view name;
  DType::Code code;
  unsigned bits;    ///< of one value, as header shapes count them
  unsigned packed;  ///< values in one of our elements: 1, or 2 and 4 for types below a byte
};

/// The table, in the format's own order: writers sort tensors by it, last first.
std::span<const SafetensorsDType> safetensors_dtypes() noexcept;
/// The row called `name`, or null.
const SafetensorsDType* find_safetensors_dtype(std::string_view name) noexcept;
/// The row that holds `dtype`, or null when safetensors has no such type.
const SafetensorsDType* find_safetensors_dtype(const DType& dtype) noexcept;

}  // namespace penstock::format
