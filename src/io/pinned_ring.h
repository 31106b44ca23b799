#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/queue.h"
#include "penstock/buffer.h"

namespace penstock::io {

/// The process's page-locked memory on the way from files to devices: a fixed number of slots that reading threads fill
/// and copy queues empty. Made with the first load to a device and kept, because locking pages is slow; the memory a
/// load takes beyond its result is this ring, whatever the file's size. Thread-safe.
class PinnedRing {
 public:
  static constexpr std::size_t kSlotBytes = std::size_t{4} << 20;
  static constexpr std::size_t kSlots = 16;

  /// The one of this process. kNoDevice, kOutOfMemory when its memory cannot be had.
  static PinnedRing& instance();

  PinnedRing();
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
    /// The slot is not filled again before `mark`, which follows copies out of it.
    void add_mark(device::MarkPtr mark) { marks_.push_back(std::move(mark)); }

   private:
    friend class PinnedRing;
    Slot(PinnedRing& ring, std::byte* data) noexcept : ring_(&ring), data_(data) {}

    PinnedRing* ring_;
    std::byte* data_;
    std::vector<device::MarkPtr> marks_;
  };

  /// The slot that has waited longest, after the copies out of it; blocks while threads hold all of them.
  Slot take();
  /// The queue that all copies out of the ring to `device` go through: one saturates the bus.
  device::QueuePtr copy_queue(Device device);

 private:
  struct Idle {
    std::byte* data = nullptr;
    std::vector<device::MarkPtr> marks;
  };

  Buffer memory_;
  std::shared_ptr<const void> locked_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Idle> idle_;
  std::vector<device::QueuePtr> queues_;
};

}  // namespace penstock::io
