#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::device {

/// Memory of somebody else's as it lies there, before Penstock's rules for strides.
struct ForeignArray {
  std::byte* data = nullptr;  ///< first element
  DType dtype = {};
  Shape shape = {};
  std::vector<std::int64_t> byte_strides = {};  ///< may be negative
  bool read_only = false;
  Device device = {};
  std::shared_ptr<const void> owner = {};
};

/// A tensor over that memory; a copy where strides are negative or no multiple of the item size.
Tensor tensor_over(const ForeignArray& array);

}  // namespace penstock::device
