#pragma once

// Arrays of other libraries, by the protocols they speak: no library is imported for it. Everything here needs the GIL.

#include <optional>

#include "interpreter/nanobind.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// The array an object is: a Tensor or LazyTensor of ours, or what speaks __array_interface__, __dlpack__,
/// __cuda_array_interface__, the buffer protocol or __array__; nothing for other objects. Shares memory where it can. A
/// `requires_grad` of the object is kept. kUnsafe for Python objects in it, kUnsupported for types Penstock has no name
/// for, kNoDevice for other devices.
std::optional<Tensor> array_from(nb::handle object);

/// The same of memory to read into or to look at; kDTypeMismatch for other objects.
Tensor memory_from(nb::handle object);

/// A new tensor of an array or nested lists of numbers; `dtype` None takes the values' own type: bool, int64, float64
/// or complex128.
Tensor tensor_from(nb::handle data, nb::handle dtype);

}  // namespace penstock::python
