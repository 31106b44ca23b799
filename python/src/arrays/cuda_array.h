#pragma once

// The CUDA array interface, version 3: device memory as Numba, CuPy and others describe it.

#include "interpreter/nanobind.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// `Tensor.__cuda_array_interface__`; AttributeError for memory of the CPU and for types it has no name for. The
/// current stream, which it names, waits for what was written.
nb::dict cuda_array_interface(const Tensor& tensor);

}  // namespace penstock::python
