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
/// Whether an object says by a method of this name (torch's is_conj, is_neg) that its elements are not what its memory
/// has.
bool has_lazy_bit(nb::handle object, const char* name);
/// (device type, index) in DLPack's numbers.
nb::tuple dlpack_device(const Tensor& tensor);

}  // namespace penstock::python
