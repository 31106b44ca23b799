#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/queue.h"
#include "penstock/buffer.h"

namespace penstock::device {

/// The process's page-locked memory on the way from files and pageable memory to devices, and back: a fixed number of
/// slots that threads fill and copy queues empty, or the other way. Made when it is first needed and kept, because
/// locking pages is slow; the memory a load takes beyond its result is this ring, whatever the file's size.
/// Thread-safe.
class PinnedRing {
 public:
  static constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
  static constexpr std::size_t kDefaultSlots = 16;

  /// The one of this process, as large as the environment's PENSTOCK_RING says, by default kDefaultSlots slots.
  /// It is made for `device`, on whose NUMA node it then lies; later calls for others give the same. kNoDevice,
  /// kOutOfMemory when its memory cannot be had, kInvalidArgument for a setting that is no size.
  static PinnedRing& instance(Device device);

  explicit PinnedRing(Device device, std::size_t slots = kDefaultSlots);
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  ~PinnedRing();

  /// A slot on loan to one thread. Destroyed, it goes back, to be filled again when its marks are reached.
  class Slot {
   public:
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&&) = delete;
    ~Slot();
    std::byte* data() const noexcept { return data_; }
    /// Starts copies out of the slot, or into it, before which it is not lent again.
    void copy(const QueuePtr& queue, std::span<const CopyRange> ranges, Direction direction);
    /// Until its copies are done; counted as a wait for `direction`.
    void wait(Direction direction);

   private:
    friend class PinnedRing;
    Slot(PinnedRing& ring, std::byte* data) noexcept : ring_(&ring), data_(data) {}

    PinnedRing* ring_;
    std::byte* data_;
    std::vector<MarkPtr> marks_;
  };

  /// The slot that has waited longest, after its copies; blocks while threads hold all of them. A thread that holds one
  /// must not take another.
  Slot take();
  /// False where the driver did not lock its memory: copies take longer then, and starting one waits for it.
  bool is_locked() const noexcept { return locked_ != nullptr; }
  std::size_t slots() const noexcept { return memory_.size() / kSlotBytes; }
  /// The queue by which files are copied out of the ring to `device`: one saturates the bus.
  QueuePtr copy_queue(Device device);

 private:
  struct Idle {
    std::byte* data = nullptr;
    std::vector<MarkPtr> marks;
  };

  Buffer memory_;
  std::shared_ptr<const void> locked_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Idle> idle_;
  std::vector<QueuePtr> queues_;
};

}  // namespace penstock::device
