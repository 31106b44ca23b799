#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/batch/batch_maker.h"
#include "data/loader/prefetcher.h"
#include "io/read/resident_pages.h"
#include "penstock/loader.h"

namespace penstock::data {

/// Prepares batches that its user decides one by one, for loops whose order comes from elsewhere. Of the options it
/// heeds collate, num_workers (without any, one thread makes the batches that may take long, and the caller's the
/// others), prefetch_factor, memory_budget, verify, device, seed and on_error; with that a batch without indices is one
/// that was left out, and a sample of a kind that Penstock does not read is an error. One thread pushes and takes;
/// `cancel` and `stats` may be called from any.
class BatchFeed {
 public:
  BatchFeed(Dataset dataset, const LoaderOptions& options);
  /// As that of DataLoader.
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  /// Batches that may be pushed and not taken.
  std::size_t window() const noexcept { return window_; }
  /// Adds a batch behind the others; kInvalidArgument beyond `window`.
  void push(std::vector<std::int64_t> indices);
  /// The batch of these indices, made in this thread. Nothing, and nothing done, where others are pushed, or where it
  /// may take long. An error as from `next_for`, which leaves the feed as it was.
  std::optional<Batch> at_once(std::vector<std::int64_t> indices);
  /// The next batch in the order of `push`, or nothing after `seconds`. An error belongs to one batch; the call after
  /// it goes on. kCancelled after `cancel`, kInvalidArgument when none is pushed.
  std::optional<Batch> next_for(double seconds);
  /// Whether `next_for` would not wait.
  bool ready() const { return state_->prefetcher.ready(); }
  /// Drops what is pushed; a waiting `next_for` throws kCancelled. `push` begins anew.
  void cancel() noexcept { state_->prefetcher.cancel(); }

  /// What on_error set aside; those of an earlier feed are made known.
  SamplePolicy& policy() const noexcept { return state_->maker.policy(); }
  LoaderStats stats() const { return state_->prefetcher.stats(); }
  LoaderStats counted() const { return state_->prefetcher.counted(); }

 private:
  /// What workers use, who may be left behind with it.
  struct State {
    State(Dataset dataset, const LoaderOptions& options);

    BatchMaker maker;
    Prefetcher prefetcher;
  };

  bool is_brief(std::span<const std::int64_t> indices);
  void add(std::vector<std::int64_t> indices, bool is_brief);

  std::uint64_t seed_;
  bool may_be_brief_;                      ///< whether this thread makes batches that are not large
  io::ResidentPages pages_;                ///< kept, so that rows of one page ask the system once
  std::atomic<std::int64_t> waiting_ = 0;  ///< pushed and not taken
  std::unique_ptr<State> state_;
  std::size_t window_;
};

}  // namespace penstock::data
