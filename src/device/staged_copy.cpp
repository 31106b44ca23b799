#include "device/staged_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/task_pool.h"
#include "device/pinned_ring.h"
#include "device/transfer_counts.h"
#include "penstock/error.h"

namespace penstock::device {
namespace {

/// Below that, starting threads takes a good part of the time that a driver needs alone.
constexpr std::size_t kMinBytes = 4 * PinnedRing::kSlotBytes;
/// Copying within the host's memory is bound by that memory, not by threads, from here on.
constexpr std::size_t kMaxThreads = 8;

/// What goes through one slot.
using Load = std::vector<CopyRange>;

std::vector<Load> cut_into_loads(std::span<const CopyRange> ranges) {
  std::vector<Load> out;
  std::size_t room = 0;
  for (CopyRange rest : ranges) {
    while (rest.bytes > 0) {
      if (room == 0) {
        out.emplace_back();
        room = PinnedRing::kSlotBytes;
      }
      const std::size_t bytes = std::min(rest.bytes, room);
      out.back().push_back({rest.to, rest.from, bytes});
      rest = {rest.to + bytes, rest.from + bytes, rest.bytes - bytes};
      room -= bytes;
    }
  }
  return out;
}

void to_device(const Load& load, PinnedRing::Slot slot, const QueuePtr& queue) {
  Load from_slot;
  from_slot.reserve(load.size());
  std::byte* place = slot.data();
  for (const CopyRange& range : load) {
    std::memcpy(place, range.from, range.bytes);
    from_slot.push_back({range.to, place, range.bytes});
    place += range.bytes;
  }
  slot.copy(queue, from_slot, Direction::kHostToDevice);
}

void to_host(const Load& load, PinnedRing::Slot slot, const QueuePtr& queue) {
  Load to_slot;
  to_slot.reserve(load.size());
  std::byte* place = slot.data();
  for (const CopyRange& range : load) {
    to_slot.push_back({place, range.from, range.bytes});
    place += range.bytes;
  }
  slot.copy(queue, to_slot, Direction::kDeviceToHost);
  slot.wait(Direction::kDeviceToHost);
  for (std::size_t i = 0; i < load.size(); ++i) std::memcpy(load[i].to, to_slot[i].to, load[i].bytes);
}

/// Null where its memory cannot be had or locked: the driver's own way is as good then.
PinnedRing* find_ring(Device device) {
  try {
    PinnedRing& ring = PinnedRing::instance(device);
    return ring.is_locked() ? &ring : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

bool worth_staging(std::size_t bytes) noexcept { return bytes >= kMinBytes && core::usable_cpus() > 1; }

bool copy_staged(const QueuePtr& queue, std::span<const CopyRange> ranges, Direction direction) {
  std::size_t total = 0;
  for (const CopyRange& range : ranges) total += range.bytes;
  PinnedRing* const ring = worth_staging(total) ? find_ring(queue->device()) : nullptr;
  if (ring == nullptr) return false;
  const std::size_t threads = std::min(core::usable_cpus(), kMaxThreads);
  const std::vector<Load> loads = cut_into_loads(ranges);
  HelperCounts counts;
  core::parallel_for(loads.size(), threads, [&](std::size_t i) {
    counts.run([&] {
      const auto move = direction == Direction::kHostToDevice ? to_device : to_host;
      move(loads[i], ring->take(), queue);
    });
  });
  return true;
}

}  // namespace penstock::device
