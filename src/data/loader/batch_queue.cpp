// Each batch goes through a slot, which is empty, then started by a worker, then granted memory, then ready, and empty
// again when the batch is taken. The memory budget says how many bytes batches may have; a batch waits for it before it
// allocates, but the one that is taken next never does, because otherwise all would wait for it.

#include "data/loader/batch_queue.h"

#include <algorithm>

namespace penstock::data {

std::int64_t BatchQueue::start_next() noexcept {
  slot(next_start_).state = Slot::State::kStarted;
  return next_start_++;
}

std::span<const std::int64_t> BatchQueue::indices(std::int64_t batch) {
  std::vector<std::int64_t>& out = slot(batch).indices;
  if (batches_) out = (*batches_)[batch];
  return out;
}

bool BatchQueue::may_allocate(std::int64_t batch, std::uint64_t bytes, std::uint64_t elsewhere) const noexcept {
  if (batch == next_take_) return true;
  // Batches before this one are taken first. Those that have not asked for memory yet must find some, so it is kept
  // free.
  std::uint64_t waiting = 0;
  for (std::int64_t b = next_take_; b < batch; ++b) {
    if (slot(b).state == Slot::State::kStarted) ++waiting;
  }
  std::uint64_t free = budget_;
  for (const std::uint64_t part : {bytes_, elsewhere, bytes}) {
    if (part > free) return false;
    free -= part;
  }
  return waiting == 0 || free / waiting >= std::max(bytes, largest_);
}

void BatchQueue::grant(std::int64_t batch, std::uint64_t bytes) noexcept {
  Slot& granted = slot(batch);
  granted.state = Slot::State::kGranted;
  granted.bytes += bytes;
  bytes_ += bytes;
  largest_ = std::max(largest_, bytes);
}

void BatchQueue::finish(std::int64_t batch, Outcome outcome, std::uint64_t bytes) noexcept {
  Slot& finished = slot(batch);
  finished.outcome = std::move(outcome);
  finished.state = Slot::State::kReady;
  if (bytes <= finished.bytes) return;
  bytes_ += bytes - finished.bytes;
  finished.bytes = bytes;
}

BatchQueue::Outcome BatchQueue::take() noexcept {
  Slot& taken = slot(next_take_++);
  bytes_ -= std::exchange(taken.bytes, 0);
  taken.state = Slot::State::kEmpty;
  return std::exchange(taken.outcome, Nothing::kCancelled);
}

void BatchQueue::drop_outcomes() noexcept {
  for (Slot& slot : slots_) slot.outcome = Nothing::kCancelled;
}

}  // namespace penstock::data
