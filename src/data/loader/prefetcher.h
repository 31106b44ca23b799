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
#include "data/sample/scratch.h"
#include "data/trace/trace.h"
#include "io/remote/traffic.h"
#include "penstock/loader.h"
#include "penstock/sampler.h"

namespace penstock::data {

struct PrefetchOptions {
  std::size_t workers = 0;
  std::size_t most_workers = 0;  ///< more than `workers`: their number follows what is measured
  std::size_t ahead = 1;         ///< batches started and not taken, at most, for each worker

  static PrefetchOptions of(const LoaderOptions& options, Trace* trace = nullptr);
  std::uint64_t memory_budget = 0;
  bool verify = true;
  Trace* trace = nullptr;  ///< outlives the Prefetcher; or none
};

/// Prepares the batches of an order ahead of the one thread that takes them, in order. Without workers a batch is made
/// when it is taken, by the thread that takes it. `cancel` and `stats` may be called from any thread; start and take by
/// one at a time.
class Prefetcher {
 public:
  using Clock = std::chrono::steady_clock;
  using Batches = std::shared_ptr<const BatchOrder>;
  /// A batch; or what went wrong with it; or nothing.
  enum class Nothing : std::uint8_t { kTimedOut, kCancelled };
  using Outcome = std::variant<Batch, Error, std::exception_ptr, Nothing>;

  /// What a Prefetcher is part of.
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
  /// Adds a batch behind the others of `start_empty`. At most `window()` may be pushed and not taken: kInvalidArgument.
  void push(std::vector<std::int64_t> indices);
  /// Batches that may be started and not taken, as of now. For the thread that takes.
  std::int64_t window() const;
  /// True between `start` and `cancel`.
  bool running() const;
  /// The next batch, which must not be past the end; waits until `deadline` (for ever without one).
  Outcome take(std::optional<Clock::time_point> deadline);
  /// Whether `take` would not wait, as far as there is a batch to take.
  bool ready() const;
  /// Drops everything. A waiting `take` gives kCancelled.
  void cancel() noexcept;
  /// Cancels for good; whether the workers have ended within that time.
  bool end(Clock::duration patience) noexcept;
  /// Where they have not: the last of them to end destroys `whole`, which they use until then.
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
  struct Run {
    Batches batches;  ///< null: they are pushed
    EpochSeed seed;
    std::int64_t pushed = 0;
    std::int64_t next_start = 0;
    std::int64_t next_take = 0;
    std::vector<Slot> slots;    ///< batch b in slots[b % size]
    std::uint64_t bytes = 0;    ///< granted and not taken
    std::uint64_t largest = 0;  ///< batch seen
    Clock::time_point started;
    bool first_taken = false;
    std::optional<Clock::time_point> given;  ///< when the caller got the last batch
    Clock::time_point counted;               ///< up to where worker_capacity is
    std::atomic<bool> cancelled{false};

    std::int64_t total() const noexcept { return batches ? batches->size() : pushed; }
    /// Of a started slot, by who started it.
    std::span<const std::int64_t> indices(std::int64_t batch);
    Slot& slot(std::int64_t batch) { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
    const Slot& slot(std::int64_t batch) const { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
  };
  using RunPtr = std::shared_ptr<Run>;

  void start_threads();
  void serve(std::size_t number);
  void work(std::size_t number);
  void set_up(Scratch& scratch) const;
  Trace::Lane* lane(std::string name) const {
    return options_.trace ? &options_.trace->lane(std::move(name)) : nullptr;
  }
  bool has_work() const;
  bool may_allocate(Run& run, std::int64_t batch, std::uint64_t bytes) const;
  /// The seconds that it waited.
  double grant(Run& run, std::int64_t batch, std::uint64_t bytes);
  /// How long a worker was at it.
  struct Effort {
    double worked = 0;
    double computed = 0;
    double waited = 0;   ///< for memory
    double stalled = 0;  ///< since the last look
  };
  Outcome prepare(Run& run, std::int64_t batch, Scratch& scratch, Effort& effort);
  /// Takes part in a batch that another worker makes.
  void help(Scratch& scratch, std::unique_lock<std::mutex>& lock);
  void note_effort(const Effort& effort);
  void look_at_caller(Clock::time_point now);
  Outcome take_ready(Run& run);
  Outcome take_inline(const RunPtr& run, Clock::time_point begin);
  void merge(Scratch& scratch);
  void note_taken(Run& run, Clock::time_point now);
  void tune(Run& run);

  const BatchMaker& maker_;
  const PrefetchOptions options_;
  Trace::Lane* const caller_lane_;
  Scratch inline_scratch_;
  mutable std::mutex mutex_;
  std::condition_variable work_;   ///< for workers: something to start, or to allocate
  std::condition_variable ready_;  ///< for the taker
  WorkerCrew crew_{mutex_, work_};
  RunPtr run_;
  std::condition_variable left_;  ///< for who ends it
  bool quit_ = false;
  std::size_t have_left_ = 0;  ///< of threads_
  Whole left_behind_{nullptr, nullptr};
  LoaderStats stats_;
  double worked_seconds_ = 0;    ///< of workers in batches, their waits for memory left out
  double iterated_seconds_ = 0;  ///< of runs before this one
  StallWatch caller_watch_;
  double process_seconds_ = 0;  ///< of this process at the last look
  WorkerTuner tuner_;
  io::remote::TrafficMeter traffic_;
  std::vector<std::thread> threads_;
};

/// How long a loader that goes waits for the file operations that its workers are in. One that hangs longer, as on a
/// storage that is gone, is left behind with what it uses.
inline constexpr std::chrono::seconds kLeavePatience{5};

/// Destroys `whole`, which `prefetcher` is part of, now or when its workers have ended.
template <class Whole>
void let_go(std::unique_ptr<Whole> whole, Prefetcher& prefetcher) noexcept {
  if (prefetcher.end(kLeavePatience)) return;
  prefetcher.leave_behind(Prefetcher::Whole(whole.release(), [](void* left) { delete static_cast<Whole*>(left); }));
}

}  // namespace penstock::data
