#pragma once

// Tensors between memories: Tensor::to, copies into tensors, and reports of them.

#include <span>

#include "penstock/buffer.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// Bytes to copy between memories, at least one of them of a device.
struct Transfer {
  Buffer from;
  Buffer to;  ///< of the same size
};

/// Submits copies to the current queue of the device that takes part (of two, the target's), after the last writes to
/// what they read, and records them as uses. All have the same kinds of ends. Done when the event is.
Event submit(std::span<const Transfer> transfers);

/// The same, and waits as far as Tensor::to promises under `options`.
void transfer(std::span<const Transfer> transfers, const TransferOptions& options);

/// The bytes that the elements of `tensor` span.
Buffer span_of(const Tensor& tensor);
/// A tensor of the same layout over a copy of those bytes, not marked as requiring gradients. Warns of a tensor that
/// goes to and fro.
Tensor copy_span(const Tensor& tensor, Device target, const TransferOptions& options);

}  // namespace penstock::ops
