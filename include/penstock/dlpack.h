#pragma once

/// Tensors to and from other C++ libraries by DLPack, without a copy of the elements: LibTorch, TVM, JAX and others
/// speak it. What is in its structures says DLPack's own dlpack.h, which programs need only to look inside.

#include <memory>
#include <optional>

#include "penstock/flag.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"

struct DLManagedTensor;           // before DLPack 1.0
struct DLManagedTensorVersioned;  // since

namespace penstock {

/// Calls the deleter that the tensor brings, if any.
struct DlpackDeleter {
  void operator()(DLManagedTensorVersioned* tensor) const noexcept;
  void operator()(DLManagedTensor* tensor) const noexcept;
};

/// A tensor on its way to another library. `release()` gives it to a function that takes it over; one that nobody took
/// is freed.
using DlpackTensor = std::unique_ptr<DLManagedTensorVersioned, DlpackDeleter>;
using UnversionedDlpackTensor = std::unique_ptr<DLManagedTensor, DlpackDeleter>;

struct DlpackOptions {
  /// Hand over a copy of the elements, which is the consumer's alone and may be written to. The tensor says so by a
  /// flag.
  Flag copy = false;
  /// Where the consumer works on memory of a device: its work there runs after what was written, and the memory is not
  /// used again before that work is done. Unset: the calling thread's current stream of the device.
  std::optional<Stream> stream = {};
};

/// `tensor` as DLPack 1 describes it: over the same memory, which lives until its deleter is called, from any thread.
/// Memory that is read-only says so by a flag. kUnsupported for types that DLPack lacks (text, structures, quantized
/// ones), kInvalidArgument for an undefined tensor.
DlpackTensor to_dlpack(const Tensor& tensor, const DlpackOptions& options = {});
/// The same for libraries that know DLPack before 1.0 alone. That has no flags: kInvalidArgument for read-only memory,
/// unless it is copied.
UnversionedDlpackTensor to_dlpack_unversioned(const Tensor& tensor, const DlpackOptions& options = {});

/// A tensor over the memory that another library describes. It takes `managed` over, also where it throws: the deleter
/// is called once, when no handle on the memory is left. Memory whose flag says so is read-only. Elements with negative
/// strides are copied, as Penstock has none. Work that writes to memory of a device is ordered before the calling
/// thread's current stream of it; streams of Penstock wait for that.
///
/// kNoDevice for memory that is neither the host's nor CUDA's. kUnsupported for types that Penstock lacks, another
/// major version than 1, elements whose address is null, and negative strides on a device. kInvalidArgument for null,
/// and for sizes, strides and offsets that no memory has; kLimit for sizes beyond 63 bits and more dimensions than
/// Shape::kMaxRank.
Tensor from_dlpack(DLManagedTensorVersioned* managed);
Tensor from_dlpack(DLManagedTensor* managed);
inline Tensor from_dlpack(DlpackTensor managed) { return from_dlpack(managed.release()); }
inline Tensor from_dlpack(UnversionedDlpackTensor managed) { return from_dlpack(managed.release()); }

}  // namespace penstock
