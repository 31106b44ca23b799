#pragma once

// What the two ways of DLPack share: penstock/dlpack.h for C++, and the capsules and the exchange interface of Python.

#include <functional>

#include "device/dlpack_abi.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// kUnsupported for types that DLPack lacks.
DLDataType dlpack_type(const DType& dtype);
/// kUnsupported for types that Penstock lacks.
DType dtype_of(const DLDataType& type);
DLDevice dlpack_device(Device device);
/// kNoDevice for devices other than the host and CUDA's.
Device device_of(const DLDevice& device);

/// The consumer works on `consumer`: it waits there for what was written, and the memory is not used again before what
/// it submits there is done. Nothing to do for memory of the CPU.
void hand_over(const Tensor& tensor, const Stream& consumer);

/// An owner of `tensor` as DLPack describes it; its deleter frees it. kUnsupported as of dlpack_type.
DLManagedTensorVersioned* export_versioned(const Tensor& tensor, bool copied);
/// The same before DLPack 1.0, which cannot say that memory is read-only.
DLManagedTensor* export_unversioned(const Tensor& tensor);
/// Describes `tensor`, which must outlive the description.
void describe_borrowed(const Tensor& tensor, DLTensor& out);

/// Calls what calls a deleter, or does not; null: always.
using ReleaseBy = void (*)(const std::function<void()>& release) noexcept;
/// A tensor over the memory of `managed`, which is taken over, also where this throws. Nothing is ordered.
Tensor import_dlpack(DLManagedTensorVersioned* managed, ReleaseBy by = nullptr);
Tensor import_dlpack(DLManagedTensor* managed, ReleaseBy by = nullptr);

}  // namespace penstock::ops
