#pragma once

// One pass over an order of batches, from `start` of a Prefetcher to `cancel`: which batches are asked for, started,
// ready and taken, and whose turn it is to allocate.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "data/sample/work.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// Guarded by the Prefetcher's mutex but for `seed`, `cancelled` and the `indices` of a started batch.
class BatchQueue {
 public:
  using Batches = std::shared_ptr<const BatchOrder>;
  /// A batch, or the error or exception that it failed with, or why there is none.
  enum class Nothing : std::uint8_t { kTimedOut, kCancelled };
  using Outcome = std::variant<Batch, Error, std::exception_ptr, Nothing>;

  /// `batches` from `first` on; null: they are pushed. At most `slots` are started and not taken; fewer are kept where
  /// there are not so many batches.
  BatchQueue(Batches batches, std::int64_t first, const EpochSeed& of, std::size_t slots, std::uint64_t memory_budget)
      : seed(of),
        batches_(std::move(batches)),
        next_start_(first),
        next_take_(first),
        budget_(memory_budget),
        slots_(is_pushed() ? slots : std::min(slots, static_cast<std::size_t>(std::max<std::int64_t>(left(), 1)))) {}

  const EpochSeed seed;
  std::atomic<bool> cancelled{false};

  bool is_pushed() const noexcept { return batches_ == nullptr; }
  /// The batch that is taken next, and how many there are from it on.
  std::int64_t next() const noexcept { return next_take_; }
  std::int64_t left() const noexcept { return total() - next_take_; }
  void push(std::vector<std::int64_t> indices) { slot(pushed_++).indices = std::move(indices); }
  /// Has the batch that was pushed last, before which none waits for a worker, made by who takes it.
  void leave_to_taker() noexcept { slot(next_start_++).state = Slot::State::kLeft; }

  bool can_start(std::int64_t window) const noexcept {
    return next_start_ < total() && next_start_ < next_take_ + window;
  }
  std::int64_t start_next() noexcept;
  /// Only for a started batch, and only for the thread that started it.
  std::span<const std::int64_t> indices(std::int64_t batch);
  /// Whether the budget has room for so many bytes of a started batch, beside `elsewhere` of none; `grant` gives them
  /// to it.
  bool may_allocate(std::int64_t batch, std::uint64_t bytes, std::uint64_t elsewhere = 0) const noexcept;
  void grant(std::int64_t batch, std::uint64_t bytes) noexcept;
  /// `bytes`: what the batch turned out to have, where that may be more than it was granted.
  void finish(std::int64_t batch, Outcome outcome, std::uint64_t bytes = 0) noexcept;
  /// Whether the next batch is left to who takes it, which then calls `pass`.
  bool is_left() const noexcept { return slot(next_take_).state == Slot::State::kLeft; }
  /// Whether the next batch is ready; `take` takes it.
  bool is_ready() const noexcept { return slot(next_take_).state == Slot::State::kReady; }
  Outcome take() noexcept;
  /// The next batch is made by who takes it.
  void pass() noexcept { slot(next_take_++).state = Slot::State::kEmpty; }
  /// Releases the memory of outcomes that nobody will look at.
  void drop_outcomes() noexcept;

 private:
  struct Slot {
    enum class State : std::uint8_t { kEmpty, kLeft, kStarted, kGranted, kReady };
    State state = State::kEmpty;
    std::vector<std::int64_t> indices;  ///< its samples
    std::uint64_t bytes = 0;
    Outcome outcome = Nothing::kCancelled;
  };

  std::int64_t total() const noexcept { return batches_ ? batches_->size() : pushed_; }
  Slot& slot(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
  const Slot& slot(std::int64_t batch) const { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }

  const Batches batches_;
  std::int64_t pushed_ = 0;
  std::int64_t next_start_;
  std::int64_t next_take_;
  std::uint64_t bytes_ = 0;    ///< of batches that were granted memory and not taken
  std::uint64_t largest_ = 0;  ///< bytes of the largest batch so far
  const std::uint64_t budget_;
  std::vector<Slot> slots_;  ///< batch b in slots_[b % size]
};

}  // namespace penstock::data
