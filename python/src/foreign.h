#pragma once

// Arrays of other libraries, by the protocols they speak: no library is imported for it. Everything here needs the GIL.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/tensor.h"

namespace nb = nanobind;

namespace penstock::python {

/// Memory of somebody else's as it lies there, before Penstock's rules for strides.
struct ForeignArray {
  std::byte* data = nullptr;  ///< first element
  DType dtype;
  Shape shape;
  std::vector<std::int64_t> byte_strides;  ///< may be negative
  bool read_only = false;
  Device device = {};
  std::shared_ptr<const void> owner;
};

/// A tensor over that memory; a copy where strides are negative or no multiple of the item size.
Tensor tensor_over(const ForeignArray& array);

/// The array an object is: a Tensor or LazyTensor of ours, or what speaks __array_interface__, __dlpack__,
/// __cuda_array_interface__, the buffer protocol or __array__; nothing for other objects. Shares memory where it can. A
/// `requires_grad` of the object is kept. kUnsafe for Python objects in it, kUnsupported for types Penstock has no name
/// for, kNoDevice for other devices.
std::optional<Tensor> array_from(nb::handle object);
/// The same for objects that speak DLPack, and nothing else.
Tensor tensor_from_dlpack(nb::handle object);

/// A new tensor of an array or nested lists of numbers; `dtype` None takes the values' own type: bool, int64, float64
/// or complex128.
Tensor tensor_from(nb::handle data, nb::handle dtype);

}  // namespace penstock::python
