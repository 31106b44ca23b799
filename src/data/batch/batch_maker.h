#pragma once

// Where a batch comes about, from the indices of its samples to tensors on their device. The loader's Prefetcher calls
// it in its workers.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "data/batch/device_batch.h"
#include "data/batch/device_steps.h"
#include "data/batch/sample_policy.h"
#include "data/collate/batch_plan.h"
#include "data/sample/work.h"
#include "data/stream/feed.h"
#include "device/buffer_pool.h"
#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/loader.h"
#include "penstock/value.h"

namespace penstock::data {

/// Makes batches: fetches the samples, decides the batch from their headers, allocates it once and moves the payload
/// into it; then the program's functions of batches are called. Any number of threads may use it at once, each with its
/// own Workspace.
class BatchMaker {
 public:
  /// Called with bytes for the batch before they are allocated; may wait. Twice for a batch that turns out not to fit
  /// into what was allocated first.
  using Grant = std::function<void(std::uint64_t bytes)>;

  BatchMaker(Dataset dataset, Collate collate, Device device, std::size_t max_idle_bytes,
             OnError on_error = OnError::kRaise);

  /// Batch `number` of these samples, or of those that on_error puts in their place: without indices where it leaves
  /// the batch out. Errors name the sample and its file, and those of functions of batches the batch. kIndexOutOfRange
  /// for an index outside the dataset, kOutOfMemory names the batch; kCancelled as CallContext::check_cancelled. Adds
  /// to own.figures.
  Batch make(std::span<const std::int64_t> indices, std::int64_t number, Workspace& own, const Grant& grant) const;

  /// From now on `make` takes the samples of a batch from `feed`, by the batch's number, whatever the indices are; a
  /// batch without indices is one that on_error left out, or the end (StreamFeed::ends_at). Null: as before.
  void take_from(std::shared_ptr<StreamFeed> feed);

  /// From now on a sample of a kind that Penstock does not read is no bad sample, but an error of its batch: whoever
  /// asks may have another way to make it.
  void raise_unsupported() noexcept { raises_unsupported_ = true; }

  const Dataset& dataset() const noexcept { return dataset_; }
  /// Blocks of host memory that were allocated so far.
  std::size_t allocations() const noexcept { return pool_.allocations() + shared_.allocations(); }
  SamplePolicy& policy() const noexcept { return policy_; }

 private:
  /// One call of `make`, as all its steps have it.
  struct Job {
    std::int64_t number;
    const CallContext& call;
    Workspace& own;
    const Grant& grant;
  };

  Batch make_of(std::span<const std::int64_t> indices, const Job& job) const;
  Batch make_guessing(std::span<const std::int64_t> indices, const Job& job) const;
  std::optional<Batch> try_once(std::span<const std::int64_t> indices, const Job& job, Guesses& guesses) const;
  void require_supported(const Fetched& fetched) const;
  Batch finish(Fetched fetched, Buffer& host, const Job& job, const Work& work) const;
  Buffer take_block(std::uint64_t bytes, std::size_t samples, const Job& job) const;
  Buffer allocate(std::uint64_t bytes, std::size_t samples, std::int64_t number) const;
  Value send(const Fetched& fetched, const BatchPlan& plan, const Buffer& host, DeviceSteps* steps,
             const Job& job) const;
  bool has_functions() const;
  Value call_functions(Value batch, std::span<const std::int64_t> indices, const Job& job) const;

  Dataset dataset_;
  Collate collate_;
  mutable device::BufferPool pool_;    ///< of host memory
  mutable device::BufferPool shared_;  ///< of memory that the dataset's runner has too (Runner::batch_memory)
  Device target_;
  DeviceBatches device_;  ///< the CPU where functions are called, which see the batch in host memory
  mutable SamplePolicy policy_;
  bool raises_unsupported_ = false;
  mutable std::mutex feed_mutex_;
  std::shared_ptr<StreamFeed> feed_;
};
/// DatasetImpl::value of a dataset whose samples lie somewhere.
Value copied_sample(const detail::DatasetImpl& dataset, std::int64_t index, const Work& work);

}  // namespace penstock::data
