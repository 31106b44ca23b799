#include "device/buffer_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/forks.h"
#include "device/buffer_access.h"
#include "device/rounded.h"

namespace penstock::device {
namespace {

constexpr std::size_t kLeastBlock = 64;

}  // namespace

struct BufferPool::State {
  State(Device where, std::function<Buffer(std::size_t)> give, std::size_t max_bytes)
      : device(where), allocate(std::move(give)), max_idle_bytes(max_bytes) {
    idle.reserve(kMaxIdleBlocks + 1);
  }

  /// The smallest idle block that wastes no more than half of itself, or nothing.
  Buffer reuse(std::size_t bytes);
  void give_back(Buffer block) noexcept;

  const Device device;
  const std::function<Buffer(std::size_t)> allocate;
  const std::size_t max_idle_bytes;
  const std::uint64_t forks = core::forks();
  std::atomic<std::size_t> allocations{0};
  std::mutex mutex;
  std::vector<Buffer> idle;  ///< longest unused first
  std::size_t idle_bytes = 0;
};

Buffer BufferPool::State::reuse(std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  auto best = idle.end();
  for (auto it = idle.begin(); it != idle.end(); ++it) {
    const bool fits = it->size() >= bytes && it->size() / 2 <= bytes;
    // Of equal blocks the last one used, whose pages are most likely in the cache.
    if (fits && (best == idle.end() || it->size() <= best->size())) best = it;
  }
  if (best == idle.end()) return {};
  Buffer block = std::move(*best);
  idle.erase(best);
  idle_bytes -= block.size();
  return block;
}

void BufferPool::State::give_back(Buffer block) noexcept {
  if (core::forks() != forks) return;  // a child may have inherited the lock of a thread that it does not have
  // Freed after the lock: unmapping a large block takes long.
  std::vector<Buffer> dropped;
  const std::scoped_lock lock(mutex);
  if (block.size() > max_idle_bytes) return;
  idle_bytes += block.size();
  idle.push_back(std::move(block));
  auto first = idle.begin();
  while (idle_bytes > max_idle_bytes || idle.end() - first > static_cast<std::ptrdiff_t>(kMaxIdleBlocks)) {
    idle_bytes -= first->size();
    ++first;
  }
  dropped.assign(std::make_move_iterator(idle.begin()), std::make_move_iterator(first));
  idle.erase(idle.begin(), first);
}

/// A block on loan: destroyed with the last handle on the Buffer.
class BufferPool::Lease {
 public:
  Lease(std::weak_ptr<State> pool, Buffer block) : pool_(std::move(pool)), block_(std::move(block)) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (const auto pool = pool_.lock()) pool->give_back(std::move(block_));
  }

 private:
  std::weak_ptr<State> pool_;
  Buffer block_;
};

BufferPool::BufferPool(Device device, std::size_t max_idle_bytes)
    : state_(std::make_shared<State>(
          device, [device](std::size_t bytes) { return Buffer::allocate(bytes, device); }, max_idle_bytes)) {}

BufferPool::BufferPool(std::size_t max_idle_bytes, std::function<Buffer(std::size_t)> allocate)
    : state_(std::make_shared<State>(Device{}, std::move(allocate), max_idle_bytes)) {}

BufferPool::~BufferPool() = default;

Buffer BufferPool::take(std::size_t bytes) {
  Buffer block = state_->reuse(bytes);
  if (!block) {
    block = state_->allocate(rounded_to_eighth(std::max(bytes, kLeastBlock), kLeastBlock));
    if (!block) return {};
    ++state_->allocations;
  }
  std::byte* const data = block.data();
  auto lease = std::make_shared<Lease>(state_, std::move(block));
  return BufferAccess::make(std::move(lease), data, bytes, state_->device);
}

std::size_t BufferPool::allocations() const noexcept { return state_->allocations; }

std::size_t BufferPool::idle_bytes() const noexcept {
  const std::scoped_lock lock(state_->mutex);
  return state_->idle_bytes;
}

}  // namespace penstock::device
