// Copies between a slot and a device run after the call that started them. So a slot goes back to the ring together
// with the marks of its copies, and `take` waits for these marks before it lends the slot again. A thread thus reads
// into one slot while the copies of others still run. If the driver cannot lock the memory, the same slots work, only
// slower.

#include "device/pinned_ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "core/environment.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/task_pool.h"
#include "core/text.h"
#include "device/backend.h"
#include "device/numa.h"
#include "penstock/device.h"
#include "penstock/error.h"

namespace penstock::device {
namespace {

void wait_for(const Mark& copied, Direction direction) {
  if (copied.done()) return;
  const CountedWait counted(direction);
  copied.synchronize();
}

/// A device that failed copies nothing more; whoever works with it is told elsewhere, and the others go on.
void wait_for_copies(const std::vector<MarkPtr>& marks) noexcept {
  for (const MarkPtr& mark : marks) {
    try {
      wait_for(*mark, Direction::kHostToDevice);
    } catch (const Error&) {
      continue;
    }
  }
}

/// All work of a queue, where no mark could be recorded. What a device that failed still does is over.
class QueueEnd final : public Mark {
 public:
  explicit QueueEnd(QueuePtr queue) : queue_(std::move(queue)) {}
  bool done() const override { return queue_->done(); }
  void synchronize() const override { queue_->synchronize(); }

 private:
  QueuePtr queue_;
};

std::size_t slots_wanted() {
  constexpr std::size_t kMega = std::size_t{1} << 20;
  constexpr std::size_t kLeast = 16;
  constexpr std::size_t kMost = 65536;
  const char* const value = core::environment("PENSTOCK_RING");
  if (value == nullptr || *value == '\0') return PinnedRing::kDefaultSlots;
  const auto megabytes = core::parse_number<std::size_t>(value);
  if (!megabytes || *megabytes < kLeast || *megabytes > kMost) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("PENSTOCK_RING is {}; set it to a number of MiB from {} to {}", core::quoted(value),
                             kLeast, kMost));
  }
  return *megabytes * kMega / PinnedRing::kSlotBytes;
}

/// Null where the driver locks no memory, or not as much: what is copied out of it arrives all the same.
std::shared_ptr<const void> try_to_lock(const Backend& backend, const Buffer& memory) {
  try {
    return backend.register_host(memory.data(), memory.size());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory && error.code() != ErrorCode::kUnsupported) throw;
    return nullptr;
  }
}

}  // namespace

PinnedRing& PinnedRing::instance(Device device) {
  pinning_backend();  // made first, so that the ring goes before it
  static PinnedRing ring(device, slots_wanted());
  return ring;
}

PinnedRing::PinnedRing(Device device, std::size_t slots) : memory_(Buffer::allocate(kSlotBytes * slots)) {
  require_device(device);
  const Backend* const backend = pinning_backend();
  // Memory of the other processor socket would slow every copy down.
  prefer_node({memory_.data(), memory_.size()}, device_properties(device).numa_node);
  // The kernel hands out its pages faster to several threads than to the one that locks them.
  core::parallel_for(slots, core::usable_cpus(),
                     [this](std::size_t i) { std::memset(memory_.data() + i * kSlotBytes, 0, kSlotBytes); });
  locked_ = try_to_lock(*backend, memory_);
  // A forked process has no use for it, and sharing pages until one side writes would move ours from under the device.
  ::madvise(memory_.data(), memory_.size(), MADV_DONTFORK);
  for (std::size_t i = 0; i < slots; ++i) idle_.push_back({memory_.data() + i * kSlotBytes, {}});
}

PinnedRing::~PinnedRing() {
  for (const Idle& slot : idle_) wait_for_copies(slot.marks);
  // Whoever gets the memory next may fork and read it.
  ::madvise(memory_.data(), memory_.size(), MADV_DOFORK);
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

void PinnedRing::Slot::copy(const QueuePtr& queue, std::span<const CopyRange> ranges, Direction direction) {
  try {
    queue->copy(ranges, direction);
    marks_.push_back(queue->record());
  } catch (const Error&) {
    // Some copies may be under way, and the slot will be filled again.
    marks_.push_back(std::make_shared<const QueueEnd>(queue));
    throw;
  }
}

void PinnedRing::Slot::wait(Direction direction) {
  for (const MarkPtr& mark : marks_) wait_for(*mark, direction);
  marks_.clear();
}

PinnedRing::Slot PinnedRing::take() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !idle_.empty(); });
  // The one that came back first, because its copies are the likeliest to be done. What is left of them is waited for
  // without the lock, so that other threads take and give back meanwhile.
  Idle next = std::move(idle_.front());
  idle_.pop_front();
  lock.unlock();
  Slot slot(*this, next.data);
  wait_for_copies(next.marks);
  return slot;
}

QueuePtr PinnedRing::copy_queue(Device device) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::find_if(queues_.begin(), queues_.end(), [device](const auto& queue) { return queue->device() == device; });
  if (found != queues_.end()) return *found;
  return queues_.emplace_back(backend_for(device.type).make_queue(device.index, 0));
}

}  // namespace penstock::device
