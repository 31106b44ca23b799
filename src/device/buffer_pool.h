#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "penstock/buffer.h"

namespace penstock::device {

/// Recycles blocks of about equal size, so that a steady stream of batches neither allocates nor faults pages. Blocks
/// are rounded up to size classes an eighth apart and serve requests of half their size and more. A Buffer from the
/// pool returns its block when its last handle goes, from any thread, also after the pool itself is gone (then the
/// block is freed). Holds at most `max_idle_bytes` in at most kMaxIdleBlocks unused blocks and frees the longest unused
/// first. Thread-safe.
class BufferPool {
 public:
  static constexpr std::size_t kMaxIdleBlocks = 256;

  explicit BufferPool(Device device, std::size_t max_idle_bytes);
  /// Of host memory that `allocate` gives, which gives none where it has none; then `take` gives none either.
  BufferPool(std::size_t max_idle_bytes, std::function<Buffer(std::size_t)> allocate);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// `bytes` bytes of undefined content, aligned as Buffer::allocate aligns them.
  Buffer take(std::size_t bytes);
  /// Blocks allocated from the backend so far.
  std::size_t allocations() const noexcept;
  /// Bytes in unused blocks now.
  std::size_t idle_bytes() const noexcept;

 private:
  struct State;
  class Lease;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::device
