#pragma once

// Elements of a tensor as Python objects and as text. Everything here needs the GIL.

#include <string>

#include "interpreter/nanobind.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// Nested lists of Python numbers, strings or bytes; the element itself for a 0-d tensor. Dates give their integers.
/// kUnsupported for structures, packed and opaque types.
nb::object to_list(const Tensor& tensor);
/// The only element, or kShapeMismatch.
nb::object to_item(const Tensor& tensor);
/// "penstock.Tensor([[1, 2], [3, 4]], dtype=int64)", long ones shortened in the middle.
std::string to_repr(const Tensor& tensor);

/// Whether it is a scalar of NumPy's, such as numpy.float32(1).
bool is_numpy_scalar(nb::handle object);
/// Whether elements of this type can be given to Python one by one.
bool has_elements(const DType& dtype) noexcept;
/// A tensor of the same values in host memory and of a type that `element_at` knows.
Tensor readable(const Tensor& tensor);
/// The element at `address`, which may be unaligned.
nb::object element_at(const std::byte* address, const DType& dtype);

}  // namespace penstock::python
