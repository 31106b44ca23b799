#pragma once

#include <cstddef>
#include <optional>

#include "penstock/buffer.h"
#include "penstock/device.h"
#include "penstock/loader.h"
#include "penstock/stream.h"

namespace penstock::data {

/// Carries the blocks of batches to a device: filled in pinned memory, copied by a stream of its own, so that batches
/// are on their way while the consumer still computes. What is left to do on the device has another stream, so that
/// later blocks do not wait for it. Any number of threads may use it at once.
class DeviceBatches {
 public:
  /// For the CPU: nothing, and neither function may be called.
  explicit DeviceBatches(Device device);

  explicit operator bool() const noexcept { return copies_.has_value(); }
  /// Pinned memory for a block.
  static Buffer host_block(std::size_t bytes) { return Buffer::allocate_pinned(bytes); }
  /// The block on the device, its copy under way; the host memory is kept and not reused until that is done.
  Buffer send(const Buffer& host) const;
  /// Where transforms are done on the device.
  const Stream& steps() const noexcept { return *steps_; }

 private:
  std::optional<Stream> copies_;
  std::optional<Stream> steps_;
};

/// Hands a batch to the calling thread: its current stream on the batch's device waits for the copies, the host does
/// not, and the memory is not reused before what that stream does with the batch while it lives.
Batch deliver(Batch batch);

}  // namespace penstock::data
