#pragma once

// Workers that make batches ahead of who takes them. Its parts: what is to be made (BatchQueue), who makes it
// (WorkerThreads, WorkerCrew), how many of them there are (WorkerTuner), and where the time went (LoaderFigures).

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/batch/batch_maker.h"
#include "data/loader/batch_queue.h"
#include "data/loader/loader_figures.h"
#include "data/loader/worker_crew.h"
#include "data/loader/worker_threads.h"
#include "data/loader/worker_tuner.h"
#include "data/sample/runner.h"
#include "data/sample/work.h"
#include "data/trace/trace.h"
#include "io/remote/traffic.h"
#include "penstock/loader.h"
#include "penstock/sampler.h"

namespace penstock::data {

struct PrefetchOptions {
  std::size_t workers = 0;
  std::size_t most_workers = 0;  ///< if more than `workers`, the tuner may add workers up to this number
  std::size_t ahead = 1;         ///< how many batches may be started and not taken, for each worker

  static PrefetchOptions of(const LoaderOptions& options, Trace* trace = nullptr);
  std::uint64_t memory_budget = 0;
  bool verify = true;
  Trace* trace = nullptr;  ///< must outlive the Prefetcher; may be null
};

/// Prepares batches ahead of the one thread that takes them, in order. Without workers a batch is made when it is
/// taken, by the thread that takes it. Any thread may call `cancel` and `stats`; only one at a time may call the
/// others.
class Prefetcher {
 public:
  using Clock = std::chrono::steady_clock;
  using Batches = BatchQueue::Batches;
  using Nothing = BatchQueue::Nothing;
  using Outcome = BatchQueue::Outcome;
  /// The object that a Prefetcher is a member of, and how to destroy it.
  using Whole = WorkerThreads::Whole;

  Prefetcher(const BatchMaker& maker, const PrefetchOptions& options);
  /// Cancels and waits for the file operation that each worker is in, however long that takes; see `let_go`.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Begins to prepare `batches` from batch `first` on, dropping what was prepared. kOutOfMemory when the
  /// threads cannot be started.
  void start(Batches batches, std::int64_t first, EpochSeed seed);
  /// Begins with no batches, which `push` adds one by one.
  void start_empty(EpochSeed seed) { start(nullptr, 0, seed); }
  /// Adds a batch after `start_empty`. kInvalidArgument when `window()` batches were pushed and not taken.
  void push(std::vector<std::int64_t> indices) { push(std::move(indices), false); }
  /// The same of a batch that `take` makes itself, whoever makes others. For one that waits for nothing: no time that
  /// `take` is given ends it.
  void push_left(std::vector<std::int64_t> indices) { push(std::move(indices), true); }
  /// How many batches may be started and not taken now. Only for the thread that takes.
  std::int64_t window() const;
  /// True between `start` and `cancel`.
  bool running() const;
  /// The next batch, which must not be past the end; waits until `deadline` (for ever without one).
  Outcome take(std::optional<Clock::time_point> deadline);
  /// Whether the next batch is ready, so that `take` would not wait.
  bool ready() const;
  /// Drops everything. A waiting `take` gives kCancelled.
  void cancel() noexcept;
  /// Cancels for good. Returns whether all workers have ended within `patience`.
  bool end(Clock::duration patience) noexcept;
  /// Whether this thread is making a batch of this object, or is in a function that was called for one.
  bool works_here() const noexcept;
  /// After `end` returned false: the last worker that ends destroys `whole`, because the workers use it until then.
  void leave_behind(Whole whole) noexcept { threads_.leave_behind(std::move(whole)); }

  LoaderStats stats() const;
  /// The same without the number of processors, which takes longer to find than a small epoch.
  LoaderStats counted() const;

 private:
  using QueuePtr = std::shared_ptr<BatchQueue>;

  void push(std::vector<std::int64_t> indices, bool is_left);
  /// As many as `batches` need, which are started and not taken, unless there are more already: a thread costs more
  /// than many a batch. Under the lock.
  void start_threads(std::size_t batches);
  void start_all_threads() noexcept;
  void work(std::size_t number);
  void set_up(CallContext& call) const;
  Trace::Lane* lane(std::string name) const {
    return options_.trace ? &options_.trace->lane(std::move(name)) : nullptr;
  }
  bool has_work() const { return queue_ && queue_->can_start(window()); }
  /// Waits until the budget has room for `bytes` of the batch. Returns the seconds that it waited.
  double grant(BatchQueue& queue, std::int64_t batch, std::uint64_t bytes);
  Outcome prepare(BatchQueue& queue, std::int64_t batch, Workspace& own, Effort& effort);
  /// Reads samples of a batch that another worker makes.
  void help(Workspace& own, std::unique_lock<std::mutex>& lock);
  Outcome take_inline(const QueuePtr& queue, Clock::time_point begin);
  void tune();

  const BatchMaker& maker_;
  const PrefetchOptions options_;
  Runner* const runner_;  ///< of the dataset; null: this process calls its functions
  Workspace caller_;      ///< makes batches where there are no workers, and those that are left to it
  io::remote::TrafficMeter traffic_;
  mutable std::mutex mutex_;       ///< guards what follows
  std::condition_variable work_;   ///< for workers: something to start, or to allocate
  std::condition_variable ready_;  ///< for the taker
  QueuePtr queue_;                 ///< null: nothing runs
  LoaderFigures figures_;
  WorkerTuner tuner_;
  WorkerCrew crew_{mutex_, work_, [this] { start_all_threads(); }};
  WorkerThreads threads_{mutex_, [this](std::size_t number) { work(number); }};  ///< last: its end waits for them
};

/// How long the end of a loader waits for the file operations of its workers. A worker that hangs longer, because its
/// storage is gone, is left behind with everything that it uses.
inline constexpr std::chrono::seconds kLeavePatience{5};

/// Destroys `whole`, which `prefetcher` is part of, now or when its workers have ended. A function that a worker calls
/// may ask what `whole` belongs to until then, so that the pointer is cleared behind it.
template <class Whole>
void let_go(std::unique_ptr<Whole>& whole, Prefetcher& prefetcher) noexcept {
  if (prefetcher.end(kLeavePatience)) return whole.reset();
  prefetcher.leave_behind(Prefetcher::Whole(whole.release(), [](void* left) { delete static_cast<Whole*>(left); }));
}

}  // namespace penstock::data
