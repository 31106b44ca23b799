#pragma once

// Tensors to and from other libraries by DLPack capsules.

#include <optional>

#include "interpreter/interrupt.h"
#include "interpreter/typed.h"
#include "ops/dlpack.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// `Tensor.__dlpack__`: a capsule that keeps the memory alive without the Tensor object. BufferError for what DLPack or
/// the consumer cannot have.
Anything to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                   nb::handle copy);
/// Whether an object says by a method of this name (torch's is_conj, is_neg) that its elements are not what its memory
/// has.
bool has_lazy_bit(nb::handle object, const char* name);
/// (device type, index) in DLPack's numbers.
TupleOf<int, int> dlpack_device(const Tensor& tensor);

/// `Tensor.__dlpack_c_exchange_api__`: our functions of DLPack's C exchange interface, in a capsule.
nb::object exchange_capsule();
/// The tensor of an object whose type offers that interface; nothing where it does not, or where the object has
/// something to say that only its `__dlpack__` says (torch's tensors that require gradients or are lazily conjugated).
std::optional<Tensor> tensor_by_exchange(nb::handle object);

/// The tensor of an object that speaks DLPack. kUnsupported for types that Penstock lacks, kNoDevice for other devices.
Tensor tensor_from_dlpack(nb::handle object);

// What both ways of DLPack share.

/// A tensor over the memory of `managed`, which is taken over, also where this throws. Its deleter may want Python.
template <class M>
Tensor imported(M* managed) {
  return ops::import_dlpack(managed, let_go_without_gil);
}
/// What `make` exports; BufferError where DLPack has no type for it.
template <class Make>
auto exported(const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw nb::buffer_error((error.message() + "; export .view_bytes() or take .numpy()").c_str());
  }
}

}  // namespace penstock::python
