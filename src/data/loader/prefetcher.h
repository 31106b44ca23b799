#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "data/batch/batch_maker.h"
#include "data/loader/stall_watch.h"
#include "data/loader/worker_crew.h"
#include "data/loader/worker_tuner.h"
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
  using Batches = std::shared_ptr<const BatchOrder>;
  /// A batch, or the error or exception that it failed with, or why there is none.
  enum class Nothing : std::uint8_t { kTimedOut, kCancelled };
  using Outcome = std::variant<Batch, Error, std::exception_ptr, Nothing>;

  /// The object that a Prefetcher is a member of, and how to destroy it.
  using Whole = std::unique_ptr<void, void (*)(void*)>;

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
  void push(std::vector<std::int64_t> indices);
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
  /// After `end` returned false: the last worker that ends destroys `whole`, because the workers use it until then.
  void leave_behind(Whole whole) noexcept;

  LoaderStats stats() const;

 private:
  struct Slot {
    enum class State : std::uint8_t { kEmpty, kStarted, kGranted, kReady };
    State state = State::kEmpty;
    std::vector<std::int64_t> indices;  ///< its samples
    std::uint64_t bytes = 0;
    Outcome outcome = Nothing::kCancelled;
  };
  /// One `start`. Guarded by mutex_ but for `batches`, `seed` and `cancelled`, and the `indices` of a started
  /// slot.
  struct EpochRun {
    Batches batches;  ///< null: they are pushed
    EpochSeed seed;
    std::int64_t pushed = 0;
    std::int64_t next_start = 0;
    std::int64_t next_take = 0;
    std::vector<Slot> slots;    ///< batch b in slots[b % size]
    std::uint64_t bytes = 0;    ///< of batches that were granted memory and not taken
    std::uint64_t largest = 0;  ///< bytes of the largest batch so far
    Clock::time_point started;
    bool first_taken = false;
    std::optional<Clock::time_point> given;  ///< when the caller got the last batch
    Clock::time_point counted;               ///< the time up to which worker_capacity counts
    std::atomic<bool> cancelled{false};

    std::int64_t total() const noexcept { return batches ? batches->size() : pushed; }
    /// Only for a started slot, and only for the thread that started it.
    std::span<const std::int64_t> indices(std::int64_t batch);
    Slot& slot(std::int64_t batch) { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
    const Slot& slot(std::int64_t batch) const { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
  };
  using EpochRunPtr = std::shared_ptr<EpochRun>;

  /// As many as `batches` need, which are started and not taken, unless there are more already: a thread costs more
  /// than many a batch. Under the lock.
  void start_threads(std::size_t batches);
  void start_all_threads() noexcept;
  void serve(std::size_t number);
  void work(std::size_t number);
  void set_up(CallContext& call) const;
  Trace::Lane* lane(std::string name) const {
    return options_.trace ? &options_.trace->lane(std::move(name)) : nullptr;
  }
  bool has_work() const;
  bool may_allocate(EpochRun& run, std::int64_t batch, std::uint64_t bytes) const;
  /// Waits until the budget has room for `bytes` of the batch. Returns the seconds that it waited.
  double grant(EpochRun& run, std::int64_t batch, std::uint64_t bytes);
  /// The seconds that a worker spent on one batch.
  struct Effort {
    double worked = 0;
    double computed = 0;
    double waited = 0;   ///< for memory
    double stalled = 0;  ///< since the last look
  };
  Outcome prepare(EpochRun& run, std::int64_t batch, Workspace& own, Effort& effort);
  /// Reads samples of a batch that another worker makes.
  void help(Workspace& own, std::unique_lock<std::mutex>& lock);
  void note_effort(const Effort& effort);
  void look_at_caller(Clock::time_point now);
  Outcome take_ready(EpochRun& run);
  Outcome take_inline(const EpochRunPtr& run, Clock::time_point begin);
  void merge(LoaderStats& stats);
  void note_taken(EpochRun& run, Clock::time_point now);
  void tune(EpochRun& run);

  const BatchMaker& maker_;
  const PrefetchOptions options_;
  Trace::Lane* const caller_lane_;
  Workspace caller_;  ///< makes batches where there are no workers
  mutable std::mutex mutex_;
  std::condition_variable work_;   ///< for workers: something to start, or to allocate
  std::condition_variable ready_;  ///< for the taker
  WorkerCrew crew_{mutex_, work_, [this] { start_all_threads(); }};
  EpochRunPtr run_;
  std::condition_variable left_;  ///< for `end`: a worker has ended
  bool quit_ = false;
  std::size_t have_left_ = 0;  ///< how many of threads_ have ended
  Whole left_behind_{nullptr, nullptr};
  LoaderStats stats_;
  double worked_seconds_ = 0;    ///< of workers in batches, without their waits for memory
  double iterated_seconds_ = 0;  ///< of the runs before this one
  StallWatch caller_watch_;
  double process_seconds_ = 0;  ///< of this process at the last look
  WorkerTuner tuner_;
  io::remote::TrafficMeter traffic_;
  std::vector<std::thread> threads_;
};

/// How long the end of a loader waits for the file operations of its workers. A worker that hangs longer, because its
/// storage is gone, is left behind with everything that it uses.
inline constexpr std::chrono::seconds kLeavePatience{5};

/// Destroys `whole`, which `prefetcher` is part of, now or when its workers have ended.
template <class Whole>
void let_go(std::unique_ptr<Whole> whole, Prefetcher& prefetcher) noexcept {
  if (prefetcher.end(kLeavePatience)) return;
  prefetcher.leave_behind(Prefetcher::Whole(whole.release(), [](void* left) { delete static_cast<Whole*>(left); }));
}

}  // namespace penstock::data
