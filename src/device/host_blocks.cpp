// Freed blocks are kept so that a program that loads again gets them back without the kernel zeroing fresh pages. How
// much is kept is learnt: only as many bytes as were freed and then needed again, so a program that loads once keeps
// nothing.

#include "device/host_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/round.h"
#include "device/buffer_access.h"
#include "device/host_memory.h"

namespace penstock::device {
namespace {

/// Whole pages that begin at a multiple of kHugePage.
struct PageRange {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

void unmap(std::byte* from, std::size_t bytes) noexcept {
  if (bytes != 0) ::munmap(from, bytes);
}

void unmap_all(std::span<const PageRange> ranges) noexcept {
  for (const PageRange& range : ranges) unmap(range.data, range.bytes);
}

/// Nothing when the kernel has no room.
PageRange map_pages(std::size_t bytes) noexcept {
  void* const mapped = ::mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return {};
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before =
      core::round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
  std::byte* const data = begin + before;
  unmap(begin, before);
  unmap(data + bytes, kHugePage - before);
  // Advice only: a kernel without huge pages uses small ones.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return {data, bytes};
}

}  // namespace

/// The lock is only tried, because a child of fork() may have inherited it locked by a thread that it does not have.
/// Whoever does not get it maps and unmaps as if nothing were kept.
struct HostBlocks::State {
  explicit State(std::optional<std::size_t> max_bytes) : max_idle_bytes(max_bytes) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { unmap_all(idle); }

  PageRange reuse(std::size_t bytes);
  void give_back(PageRange range) noexcept;
  bool keep(PageRange range, std::vector<PageRange>& dropped) noexcept;
  std::vector<PageRange> take_idle();

  std::mutex mutex;
  std::optional<std::size_t> max_idle_bytes;  ///< computed when it is first needed
  std::vector<PageRange> idle;                ///< longest unused first
  std::atomic<std::size_t> idle_bytes = 0;    ///< written under the mutex
  std::size_t returned = 0;                   ///< bytes given to the kernel that nobody has needed again so far
  std::size_t wanted_again = 0;               ///< bytes needed again after they were given to the kernel
};

/// Takes `bytes` from the smallest kept block that holds them; the rest of that block stays.
PageRange HostBlocks::State::reuse(std::size_t bytes) {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return {};
  auto best = idle.end();
  for (auto it = idle.begin(); it != idle.end(); ++it) {
    if (it->bytes >= bytes && (best == idle.end() || it->bytes <= best->bytes)) best = it;
  }
  if (best == idle.end()) {
    const std::size_t again = std::min(bytes, returned);
    returned -= again;
    wanted_again += again;
    return {};
  }
  const std::size_t used = std::min(core::round_up(bytes, kHugePage), best->bytes);
  const PageRange out = {best->data, used};
  idle_bytes -= used;
  *best = {best->data + used, best->bytes - used};
  if (best->bytes == 0) idle.erase(best);
  return out;
}

/// Keeps the range if it may; returns false if not. Also when there is no memory for the list of what is kept.
bool HostBlocks::State::keep(PageRange range, std::vector<PageRange>& dropped) noexcept try {
  if (!max_idle_bytes) max_idle_bytes = host_memory().total_bytes / 4;
  const std::size_t most = std::min(*max_idle_bytes, wanted_again);
  if (range.bytes > most || ::madvise(range.data, range.bytes, MADV_FREE) != 0) return false;
  idle.reserve(idle.size() + 1);
  dropped.reserve(idle.size());
  while (idle_bytes + range.bytes > most) {
    dropped.push_back(idle.front());
    idle_bytes -= idle.front().bytes;
    idle.erase(idle.begin());
  }
  idle.push_back(range);
  idle_bytes += range.bytes;
  return true;
} catch (const std::exception&) {
  return false;
}

void HostBlocks::State::give_back(PageRange range) noexcept {
  std::vector<PageRange> dropped;
  bool kept = false;
  {
    const std::unique_lock lock(mutex, std::try_to_lock);
    kept = lock && keep(range, dropped);
    if (lock && !kept) returned += range.bytes;
  }
  // Not under the lock, because it takes long to unmap a large block.
  unmap_all(dropped);
  if (!kept) unmap(range.data, range.bytes);
}

std::vector<PageRange> HostBlocks::State::take_idle() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return {};
  idle_bytes = returned = wanted_again = 0;
  return std::exchange(idle, {});
}

/// A block on loan: destroyed with the last handle on the Buffer.
class HostBlocks::Lease {
 public:
  Lease(std::weak_ptr<State> blocks, PageRange range) : blocks_(std::move(blocks)), range_(range) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (const auto blocks = blocks_.lock()) {
      blocks->give_back(range_);
    } else {
      unmap(range_.data, range_.bytes);
    }
  }

 private:
  std::weak_ptr<State> blocks_;
  PageRange range_;
};

HostBlocks::HostBlocks(std::optional<std::size_t> max_idle_bytes) : state_(std::make_shared<State>(max_idle_bytes)) {}

HostBlocks::~HostBlocks() = default;

Buffer HostBlocks::take(std::size_t bytes) const {
  const std::size_t length = core::round_up(bytes, core::page_size());
  PageRange range = state_->reuse(length);
  if (range.data == nullptr) range = map_pages(length);
  if (range.data == nullptr) {
    release_idle();
    range = map_pages(length);
  }
  if (range.data == nullptr) return {};
  return BufferAccess::make(std::make_shared<Lease>(state_, range), range.data, bytes, Device{});
}

void HostBlocks::release_idle() const { unmap_all(state_->take_idle()); }

std::size_t HostBlocks::idle_bytes() const { return state_->idle_bytes; }

}  // namespace penstock::device
