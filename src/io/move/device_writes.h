#pragma once

// Bytes on their way to devices: slots of the pinned ring that threads fill (Staging), and the copy queues that empty
// them (DeviceWrites). RangeReader fills, device/pinned_ring.h owns the memory.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "device/pinned_ring.h"
#include "device/queue.h"
#include "io/move/plan.h"
#include "penstock/buffer.h"

namespace penstock::io {

/// Memory that a move will fill. On a device it belongs to the copy queue, so that copies into it wait for no other
/// work.
Buffer allocate_to_fill(std::size_t bytes, Device device);

/// The buffers of a move that lie on devices, and the copy queues that fill them.
class DeviceWrites {
 public:
  /// Copies are ordered after all work that made the buffers or reads their earlier content. The copies count as uses
  /// of the buffers once `finish` or `settle` was called; one of them has to be. `buffers` must outlive this.
  explicit DeviceWrites(std::span<const Buffer> buffers);

  bool empty() const noexcept { return queues_.empty(); }
  /// The ring that fills the buffers; null when no buffer lies on a device.
  device::PinnedRing* ring() const noexcept { return ring_; }
  bool has(const Target& target) const noexcept;
  const Buffer& buffer(const Target& target) const noexcept { return buffers_[target.buffer]; }
  std::span<const device::QueuePtr> queues() const noexcept { return queues_; }
  std::size_t queue_index(Device device) const noexcept;

  /// Waits on the host until no work that made or reads the buffers is under way. Then cuFile, which knows no queues,
  /// may fill them.
  void wait_for_earlier() const;
  /// Call after the last copy was submitted. The calling thread's current streams wait for all copies, and so does the
  /// host if `waits`.
  void finish(bool waits) const;
  /// Call after a failure. When it returns, no submitted copy writes to the caller's memory any more.
  void settle() const noexcept;

 private:
  void finish(const device::QueuePtr& queue, bool waits) const;

  std::span<const Buffer> buffers_;
  device::PinnedRing* ring_ = nullptr;
  std::vector<device::QueuePtr> queues_;  ///< one for each device
};

/// One thread's use of the ring: bytes are placed in a slot until it is full, and copied to the device from there.
class Staging {
 public:
  explicit Staging(const DeviceWrites& writes) : writes_(writes), copies_(writes.queues().size()) {}

  /// Makes sure that a slot has room for `bytes` bytes, which are no more than half of one.
  void make_room(std::size_t bytes);
  /// Where the bytes of `target` are to be read to. There must be room for them.
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
