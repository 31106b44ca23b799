#include "io/pinned_ring.h"

#include <algorithm>
#include <utility>

#include "device/backend.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

void wait_for(const device::Mark& copied) {
  if (copied.done()) return;
  const device::CountedWait counted(device::Direction::kHostToDevice);
  copied.synchronize();
}

}  // namespace

PinnedRing& PinnedRing::instance() {
  device::pinning_backend();  // made first, so that the ring goes before it
  static PinnedRing ring;
  return ring;
}

PinnedRing::PinnedRing() : memory_(Buffer::allocate(kSlotBytes * kSlots)) {
  const device::Backend* const backend = device::pinning_backend();
  if (backend == nullptr) device::require_device(Device(DeviceType::kCuda, 0));
  locked_ = backend->register_host(memory_.data(), memory_.size());
  for (std::size_t i = 0; i < kSlots; ++i) idle_.push_back({memory_.data() + i * kSlotBytes, {}});
}

PinnedRing::~PinnedRing() {
  for (const device::QueuePtr& queue : queues_) {
    try {
      queue->synchronize();
    } catch (const Error&) {
      continue;  // a device that failed copies nothing more
    }
  }
}

PinnedRing::Slot::Slot(Slot&& other) noexcept
    : ring_(std::exchange(other.ring_, nullptr)), data_(other.data_), marks_(std::move(other.marks_)) {}

PinnedRing::Slot::~Slot() {
  if (ring_ == nullptr) return;
  {
    const std::scoped_lock lock(ring_->mutex_);
    ring_->idle_.push_back({data_, std::move(marks_)});
  }
  ring_->wake_.notify_one();
}

PinnedRing::Slot PinnedRing::take() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !idle_.empty(); });
  Idle next = std::move(idle_.front());
  idle_.pop_front();
  lock.unlock();
  Slot slot(*this, next.data);
  slot.marks_ = std::move(next.marks);
  for (const device::MarkPtr& mark : slot.marks_) wait_for(*mark);
  slot.marks_.clear();
  return slot;
}

device::QueuePtr PinnedRing::copy_queue(Device device) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::find_if(queues_.begin(), queues_.end(), [device](const auto& queue) { return queue->device() == device; });
  if (found != queues_.end()) return *found;
  return queues_.emplace_back(device::backend_for(device.type).make_queue(device.index, 0));
}

}  // namespace penstock::io
