// Host memory reaches a device in two hops. A thread places bytes in a slot of the pinned ring (Staging) until it is
// full; then one call to the driver copies all of them on, and the slot is free again when the device has read it.
// Copies are made on a queue of their own, so they overlap with reading and with the work of the user's streams, which
// wait for them at the end (finish).

#include "io/move/device_writes.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "device/backend.h"
#include "penstock/stream.h"

namespace penstock::io {

Buffer allocate_to_fill(std::size_t bytes, Device device) {
  if (device.type == DeviceType::kCpu) return Buffer::allocate(bytes);
  // Memory that comes from the pool in the order of the queue that fills it need not wait for other work.
  const StreamGuard guard(StreamAccess::make(device::PinnedRing::instance(device).copy_queue(device)));
  return Buffer::allocate(bytes, device);
}

DeviceWrites::DeviceWrites(std::span<const Buffer> buffers) : buffers_(buffers) {
  for (const Buffer& buffer : buffers) {
    if (buffer.device().type == DeviceType::kCpu || buffer.size() == 0) continue;
    const auto same = [&](const device::QueuePtr& queue) { return queue->device() == buffer.device(); };
    auto found = std::find_if(queues_.begin(), queues_.end(), same);
    if (found == queues_.end()) {
      ring_ = &device::PinnedRing::instance(buffer.device());
      queues_.push_back(ring_->copy_queue(buffer.device()));
      found = std::prev(queues_.end());
    }
    buffer.order_after_uses(StreamAccess::make(*found));
  }
}

bool DeviceWrites::has(const Target& target) const noexcept {
  return target.buffer != kDiscard && buffer(target).device().type != DeviceType::kCpu;
}

std::size_t DeviceWrites::queue_index(Device device) const noexcept {
  const auto same = [device](const device::QueuePtr& queue) { return queue->device() == device; };
  return static_cast<std::size_t>(std::find_if(queues_.begin(), queues_.end(), same) - queues_.begin());
}

void DeviceWrites::wait_for_earlier() const {
  for (const device::QueuePtr& queue : queues_) queue->record()->synchronize();
}

void DeviceWrites::finish(bool waits) const {
  for (const device::QueuePtr& queue : queues_) finish(queue, waits);
}

void DeviceWrites::finish(const device::QueuePtr& queue, bool waits) const {
  const device::MarkPtr mark = queue->record();
  // From here on they are there when that is passed, whatever else the queue has to copy.
  const Stream stream = StreamAccess::make(queue);
  for (const Buffer& buffer : buffers_) {
    if (buffer.device() != queue->device()) continue;
    buffer.record_use(stream, Buffer::Access::kWrite, StreamAccess::make(mark));
  }
  device::current_queue(queue->device())->wait(*mark);
  if (!waits) return;
  const device::CountedWait counted(device::Direction::kHostToDevice);
  mark->synchronize();
}

void DeviceWrites::settle() const noexcept {
  for (const device::QueuePtr& queue : queues_) {
    try {
      finish(queue, true);
    } catch (const std::exception&) {
      continue;  // a device that failed copies nothing more, and the first error is the one to be told
    }
  }
}

void Staging::make_room(std::size_t bytes) {
  // Before another slot is taken: a thread that holds one while it waits for the next could wait for itself.
  if (slot_ && device::PinnedRing::kSlotBytes - used_ < bytes) submit();
  if (!slot_) slot_.emplace(writes_.ring()->take());
}

std::byte* Staging::place(const Target& target) {
  const Buffer& buffer = writes_.buffer(target);
  std::byte* const from = slot_->data() + used_;
  std::byte* const to = buffer.data() + target.buffer_offset;
  const auto bytes = static_cast<std::size_t>(target.length);
  used_ += bytes;
  auto& copies = copies_[writes_.queue_index(buffer.device())];
  // Neighbours in both memories are one copy, since the driver takes microseconds for each.
  if (!copies.empty() && copies.back().to + copies.back().bytes == to &&
      copies.back().from + copies.back().bytes == from) {
    copies.back().bytes += bytes;
  } else {
    copies.push_back({to, from, bytes});
  }
  return from;
}

void Staging::submit() {
  if (!slot_) return;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].empty()) continue;
    slot_->copy(writes_.queues()[i], copies_[i], device::Direction::kHostToDevice);
    copies_[i].clear();
  }
  used_ = 0;
  slot_.reset();
}

}  // namespace penstock::io
