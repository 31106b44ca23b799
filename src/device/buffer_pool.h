#pragma once

#include <cstddef>
#include <memory>

#include "penstock/buffer.h"

namespace penstock::device {

/// Recycles equal-sized blocks, so that a steady stream of batches neither allocates nor faults pages. A Buffer from
/// the pool returns its block when its last handle goes, from any thread, also after the pool itself is gone (then the
/// block is freed). Holds at most `max_idle_bytes` of unused blocks. Thread-safe.
class BufferPool {
 public:
  explicit BufferPool(Device device, std::size_t max_idle_bytes);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// At least `bytes`; size() of the result is exactly `bytes`. Content is undefined.
  Buffer take(std::size_t bytes);
  /// Blocks allocated from the backend so far.
  std::size_t allocations() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::device
