#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/pinned_ring.h"
#include "device/queue.h"
#include "io/move/plan.h"
#include "penstock/buffer.h"

namespace penstock::io {

/// Memory to be filled by a move: on a device it belongs to the copy queue, which waits for nothing else to have it.
Buffer allocate_to_fill(std::size_t bytes, Device device);

/// The buffers of a move that lie on devices, and the copy queues that fill them.
class DeviceWrites {
 public:
  /// Copies are ordered after whatever made the buffers or reads what they had; they count as uses once `finish` or
  /// `settle` was called, one of which has to be. `buffers` must outlive this.
  explicit DeviceWrites(std::span<const Buffer> buffers);

  bool empty() const noexcept { return queues_.empty(); }
  /// What they are filled through; null where they are empty.
  device::PinnedRing* ring() const noexcept { return ring_; }
  bool has(const Target& target) const noexcept;
  const Buffer& buffer(const Target& target) const noexcept { return buffers_[target.buffer]; }
  std::span<const device::QueuePtr> queues() const noexcept { return queues_; }
  std::size_t queue_index(Device device) const noexcept;

  /// The host waits until nothing that made the buffers or reads them is under way, so that others than the copy queues
  /// may fill them.
  void wait_for_earlier() const;
  /// After the last copy was submitted: the calling thread's current streams wait for all of them, and the host too
  /// when it `waits`.
  void finish(bool waits) const;
  /// After a failure: what was submitted is over, and writes no more to memory of the caller's.
  void settle() const noexcept;

 private:
  void finish(const device::QueuePtr& queue, bool waits) const;

  std::span<const Buffer> buffers_;
  device::PinnedRing* ring_ = nullptr;
  std::vector<device::QueuePtr> queues_;  ///< one for each device
};

/// One thread's way through the ring: bytes are placed in a slot until it is full, and copied on from there.
class Staging {
 public:
  explicit Staging(const DeviceWrites& writes) : writes_(writes), copies_(writes.queues().size()) {}

  /// Has `bytes` bytes of a slot, no more than half of one, ready to be placed.
  void make_room(std::size_t bytes);
  /// Where the bytes of `target`, for which there is room, are to be read to.
  std::byte* place(const Target& target);
  /// Whether nothing has been placed since the last copies were started.
  bool empty() const noexcept { return used_ == 0; }
  /// Starts the copies of what was placed and read, and gives the slot back.
  void submit();

 private:
  const DeviceWrites& writes_;
  std::optional<device::PinnedRing::Slot> slot_;
  std::size_t used_ = 0;
  std::vector<std::vector<device::CopyRange>> copies_;  ///< of each queue
};

}  // namespace penstock::io
