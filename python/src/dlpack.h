#pragma once

// Tensors to and from other libraries by DLPack capsules.

#include <nanobind/nanobind.h>

#include "penstock/tensor.h"

namespace nb = nanobind;

namespace penstock::python {

/// `Tensor.__dlpack__`: a capsule that keeps the memory alive without the Tensor object. BufferError for what DLPack or
/// the consumer cannot have.
nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy);
/// (device type, index) in DLPack's numbers.
nb::tuple dlpack_device(const Tensor& tensor);

}  // namespace penstock::python
