// A run (EpochRun) is one pass over an order of batches, from `start` to `cancel`. Its batches go through slots, each
// of which is empty, then started by a worker, then granted memory, then ready, and empty again when the batch is
// taken. The window says how many batches may be started and not taken. The memory budget says how many bytes they may
// have; a batch waits for it before it allocates, but the one that is taken next never does, because otherwise all
// would wait for it.
//
// Workers wait on work_ for a batch to start, for memory, or to help another worker. The taker waits on ready_ for the
// next batch. `end` waits on left_ until the workers have ended. A run that is cancelled is dropped at once: workers
// hold it until their file operation ends, and throw away what they made.

#include "data/loader/prefetcher.h"

#include <pthread.h>

#include <algorithm>
#include <ctime>
#include <span>
#include <system_error>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/task_pool.h"
#include "core/thread_time.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// What a thread may hold of whole small files beside the batches.
std::size_t whole_file_bytes(std::uint64_t memory_budget, std::size_t workers) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  return static_cast<std::size_t>(std::clamp(memory_budget / (2 * std::max<std::uint64_t>(workers, 1)), kLeast, kMost));
}

double seconds_between(Prefetcher::Clock::time_point start, Prefetcher::Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

double seconds_since(Prefetcher::Clock::time_point start) { return seconds_between(start, Prefetcher::Clock::now()); }

constexpr std::size_t kMostPrefetch = 1 << 20;

void require_bounded(const LoaderOptions& options) {
  if (options.num_workers > LoaderOptions::kMostWorkers && options.num_workers != LoaderOptions::kAutoWorkers) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("num_workers is {}; it must be {} or less, and more than there are processors gain nothing",
                     options.num_workers, LoaderOptions::kMostWorkers));
  }
  if (options.prefetch_factor < 1 || options.prefetch_factor > kMostPrefetch) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("prefetch_factor is {}; it must be from 1 to {}", options.prefetch_factor, kMostPrefetch));
  }
}

}  // namespace

PrefetchOptions PrefetchOptions::of(const LoaderOptions& options, Trace* trace) {
  constexpr std::size_t kMostProcessors = 16;
  constexpr std::size_t kMostWaiting = 64;
  const bool automatic = options.num_workers == LoaderOptions::kAutoWorkers;
  require_bounded(options);
  const std::size_t workers = automatic ? std::min(core::usable_cpus(), kMostProcessors) : options.num_workers;
  return {.workers = workers,
          .most_workers = automatic ? kMostWaiting : workers,
          .ahead = options.prefetch_factor,
          .memory_budget = options.memory_budget,
          .verify = options.verify,
          .trace = trace};
}

Prefetcher::Prefetcher(const BatchMaker& maker, const PrefetchOptions& options)
    : maker_(maker),
      options_(options),
      caller_lane_(lane("caller")),
      tuner_(options.workers, std::max(options.workers, options.most_workers), core::usable_cpus()) {
  set_up(caller_.call);
  caller_.figures.clock.trace_to(caller_lane_);
  stats_.processors = core::usable_cpus();
}

void Prefetcher::set_up(CallContext& call) const {
  call.verify = options_.verify;
  call.whole_file_bytes = whole_file_bytes(options_.memory_budget, tuner_.workers());
}

Prefetcher::~Prefetcher() {
  cancel();
  {
    const std::scoped_lock lock(mutex_);
    quit_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool Prefetcher::end(Clock::duration patience) noexcept {
  cancel();
  std::unique_lock lock(mutex_);
  quit_ = true;
  work_.notify_all();
  return left_.wait_for(lock, patience, [this] { return have_left_ == threads_.size(); });
}

void Prefetcher::leave_behind(Whole whole) noexcept {
  const std::scoped_lock lock(mutex_);  // unlocked before `whole` is destroyed, which owns the mutex
  for (std::thread& thread : threads_) thread.detach();
  if (have_left_ < threads_.size()) left_behind_ = std::move(whole);
}

void Prefetcher::serve(std::size_t number) {
  work(number);
  Whole last{nullptr, nullptr};  // may own this Prefetcher: destroyed last, after the lock
  const std::scoped_lock lock(mutex_);
  if (++have_left_ == threads_.size()) last = std::move(left_behind_);
  left_.notify_all();
}

void Prefetcher::start(Batches batches, std::int64_t first, EpochSeed seed) {
  cancel();
  auto run = std::make_shared<EpochRun>();
  run->batches = std::move(batches);
  run->seed = seed;
  run->next_start = run->next_take = first;
  run->slots.resize(std::max<std::size_t>(std::max(options_.workers, options_.most_workers) * options_.ahead, 1));
  run->started = run->counted = Clock::now();
  // Stall times are sampled at intervals. An epoch may be shorter than one interval, so sampling continues from epoch
  // to epoch.
  if (caller_watch_.due(run->started)) {
    caller_watch_.stalled(run->started);
    process_seconds_ = core::process_seconds();
  }
  {
    const std::scoped_lock lock(mutex_);
    start_threads(static_cast<std::size_t>(std::max<std::int64_t>(run->total() - first, 0)));
    run_ = std::move(run);
  }
  work_.notify_all();
}

void Prefetcher::push(std::vector<std::int64_t> indices) {
  {
    const std::scoped_lock lock(mutex_);
    if (!run_ || run_->pushed - run_->next_take >= window()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("more than {} asked for and not taken; take one first",
                                                            core::counted(window(), "batch is", "batches are")));
    }
    start_threads(static_cast<std::size_t>(run_->pushed + 1 - run_->next_take));
    run_->slot(run_->pushed++).indices = std::move(indices);
  }
  work_.notify_all();
}

std::span<const std::int64_t> Prefetcher::EpochRun::indices(std::int64_t batch) {
  std::vector<std::int64_t>& out = slot(batch).indices;
  if (batches) out = (*batches)[batch];
  return out;
}

void Prefetcher::start_threads(std::size_t batches) {
  const std::size_t wanted = std::min(batches, tuner_.workers());
  try {
    while (!quit_ && threads_.size() < wanted) {
      threads_.emplace_back([this, number = threads_.size()] { serve(number); });
      ::pthread_setname_np(threads_.back().native_handle(), "penstock-load");
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kOutOfMemory,
                core::format("only {} of {} worker threads could be started ({}); use fewer workers", threads_.size(),
                             tuner_.workers(), error.code().message()));
  }
}

void Prefetcher::start_all_threads() noexcept {
  try {
    start_threads(tuner_.workers());
  } catch (const Error&) {
    // The system gives no more threads; those that run are enough.
  }
}

bool Prefetcher::running() const {
  const std::scoped_lock lock(mutex_);
  return run_ != nullptr;
}

bool Prefetcher::ready() const {
  const std::scoped_lock lock(mutex_);
  if (run_ == nullptr || run_->next_take >= run_->next_start) return false;
  return std::as_const(*run_).slot(run_->next_take).state == Slot::State::kReady;
}

void Prefetcher::cancel() noexcept {
  EpochRunPtr dropped;  // outlives the lock, because its batches are released without holding it
  {
    const std::scoped_lock lock(mutex_);
    dropped = std::exchange(run_, nullptr);
    if (dropped) {
      dropped->cancelled = true;
      iterated_seconds_ += seconds_since(dropped->started);
    }
  }
  work_.notify_all();
  ready_.notify_all();
  if (!dropped) return;
  // A worker may hold the run until its file operation ends. Nobody looks at the outcomes of a cancelled run, so their
  // memory is released now.
  for (Slot& slot : dropped->slots) slot.outcome = Nothing::kCancelled;
}

std::int64_t Prefetcher::window() const {
  return static_cast<std::int64_t>(std::max<std::size_t>(tuner_.workers() * options_.ahead, 1));
}

bool Prefetcher::has_work() const {
  return run_ && run_->next_start < run_->total() && run_->next_start < run_->next_take + window();
}

void Prefetcher::work(std::size_t number) {
  Workspace own;
  own.call.crew = &crew_;
  own.figures.clock.trace_to(lane(core::format("worker {}", number)));
  StallWatch watch;
  watch.stalled(Clock::now());
  std::unique_lock lock(mutex_);
  while (true) {
    const auto idle = Clock::now();
    work_.wait(lock, [&] { return quit_ || (number < tuner_.workers() && (crew_.wants_help() || has_work())); });
    if (Trace::Lane* const lane = own.figures.clock.lane()) lane->add(Trace::What::kIdle, idle, Clock::now());
    if (quit_) return;
    if (crew_.wants_help()) {
      help(own, lock);
      continue;
    }
    set_up(own.call);
    EpochRunPtr run = run_;
    const std::int64_t batch = run->next_start++;
    run->slot(batch).state = Slot::State::kStarted;
    lock.unlock();
    Effort effort;
    Outcome outcome = prepare(*run, batch, own, effort);
    if (const auto now = Clock::now(); watch.due(now)) effort.stalled = watch.stalled(now);
    lock.lock();
    merge(own.figures.stats);
    note_effort(effort);
    if (!run->cancelled) {
      Slot& slot = run->slot(batch);
      slot.outcome = std::move(outcome);
      slot.state = Slot::State::kReady;
      if (batch == run->next_take) {
        // The thread that wakes needs the lock at once.
        lock.unlock();
        ready_.notify_all();
        lock.lock();
      }
    } else {
      lock.unlock();
      outcome = Nothing::kCancelled;
      run.reset();
      lock.lock();
    }
  }
}

void Prefetcher::help(Workspace& own, std::unique_lock<std::mutex>& lock) {
  Effort effort;
  const auto begin = Clock::now();
  const double computed = core::thread_seconds();
  const io::remote::TrafficScope traffic(&traffic_);
  crew_.help(own.scratch, own.figures, lock);
  effort.worked = seconds_since(begin);
  effort.computed = core::thread_seconds() - computed;
  merge(own.figures.stats);
  note_effort(effort);
}

Prefetcher::Outcome Prefetcher::prepare(EpochRun& run, std::int64_t batch, Workspace& own, Effort& effort) {
  own.call.cancelled = &run.cancelled;
  own.call.epoch_seed = run.seed;
  const io::remote::TrafficScope traffic(&traffic_);
  const auto begin = Clock::now();
  const double computed = core::thread_seconds();
  Trace::Lane* const lane = own.figures.clock.lane();
  const auto ask = [&](std::uint64_t bytes) {
    const auto asked = Clock::now();
    const double waited = grant(run, batch, bytes);
    if (lane != nullptr && waited > 0) lane->add(Trace::What::kMemory, asked, Clock::now(), batch);
    effort.waited += waited;
  };
  Outcome out = Nothing::kCancelled;
  try {
    out = maker_.make(run.indices(batch), batch, own, ask);
  } catch (const Error& error) {
    out = error;
  } catch (...) {
    out = std::current_exception();
  }
  const auto end = Clock::now();
  if (lane != nullptr) lane->add(Trace::What::kBatch, begin, end, batch);
  effort.worked = seconds_between(begin, end) - effort.waited;
  effort.computed = core::thread_seconds() - computed;
  return out;
}

void Prefetcher::note_effort(const Effort& effort) {
  worked_seconds_ += effort.worked;
  stats_.compute_seconds += effort.computed;
  stats_.budget_seconds += effort.waited;
  stats_.stall_seconds += effort.stalled;
}

bool Prefetcher::may_allocate(EpochRun& run, std::int64_t batch, std::uint64_t bytes) const {
  if (batch == run.next_take) return true;
  // Batches before this one are taken first. Those that have not asked for memory yet must find some, so it is kept
  // free.
  std::uint64_t waiting = 0;
  for (std::int64_t b = run.next_take; b < batch; ++b) {
    if (run.slot(b).state == Slot::State::kStarted) ++waiting;
  }
  const std::uint64_t budget = options_.memory_budget;
  if (run.bytes > budget || bytes > budget - run.bytes) return false;
  const std::uint64_t free = budget - run.bytes - bytes;
  return waiting == 0 || free / waiting >= std::max(bytes, run.largest);
}

double Prefetcher::grant(EpochRun& run, std::int64_t batch, std::uint64_t bytes) {
  if (options_.workers == 0) return 0;
  double waited = 0;
  {
    std::unique_lock lock(mutex_);
    const auto may_go_on = [&] { return run.cancelled || may_allocate(run, batch, bytes); };
    if (!may_go_on()) {
      const auto begin = Clock::now();
      work_.wait(lock, may_go_on);
      waited = seconds_since(begin);
    }
    if (!run.cancelled) {
      Slot& slot = run.slot(batch);
      slot.state = Slot::State::kGranted;
      slot.bytes += bytes;
      run.bytes += bytes;
      run.largest = std::max(run.largest, bytes);
    }
  }
  if (run.cancelled) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  // A batch that waited for this one to ask may go on now.
  work_.notify_all();
  return waited;
}

Prefetcher::Outcome Prefetcher::take(std::optional<Clock::time_point> deadline) {
  auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  const EpochRunPtr run = run_;
  if (!run) return Nothing::kCancelled;
  if (run->given) {
    stats_.caller_seconds += seconds_between(*run->given, begin);
    if (caller_lane_ != nullptr) caller_lane_->add(Trace::What::kCaller, *run->given, begin, run->next_take - 1);
  } else if (run->batches) {
    begin = run->started;  // the first wait begins there, because workers may have taken the processor from the caller
  }
  if (options_.workers == 0) {
    lock.unlock();
    return take_inline(run, begin);
  }
  const auto done = [&] { return run->cancelled || run->slot(run->next_take).state == Slot::State::kReady; };
  bool in_time = true;
  if (deadline) {
    in_time = ready_.wait_until(lock, *deadline, done);
  } else {
    ready_.wait(lock, done);
  }
  const auto end = Clock::now();
  stats_.wait_seconds += seconds_between(begin, end);
  if (caller_lane_ != nullptr) caller_lane_->add(Trace::What::kWait, begin, end, run->next_take);
  if (run->cancelled) return Nothing::kCancelled;
  run->given = end;
  if (!in_time) return Nothing::kTimedOut;
  Outcome outcome = take_ready(*run);
  note_taken(*run, end);
  tune(*run);
  lock.unlock();
  work_.notify_all();
  return outcome;
}

Prefetcher::Outcome Prefetcher::take_ready(EpochRun& run) {
  Slot& slot = run.slot(run.next_take);
  Outcome outcome = std::exchange(slot.outcome, Nothing::kCancelled);
  run.bytes -= std::exchange(slot.bytes, 0);
  slot.state = Slot::State::kEmpty;
  ++run.next_take;
  return outcome;
}

Prefetcher::Outcome Prefetcher::take_inline(const EpochRunPtr& run, Clock::time_point begin) {
  Effort effort;
  Outcome outcome = prepare(*run, run->next_take, caller_, effort);
  const std::scoped_lock lock(mutex_);
  merge(caller_.figures.stats);
  note_effort(effort);
  const auto end = Clock::now();
  stats_.wait_seconds += seconds_between(begin, end);
  if (caller_lane_ != nullptr) caller_lane_->add(Trace::What::kWait, begin, end, run->next_take);
  if (run->cancelled) return Nothing::kCancelled;
  run->given = end;
  ++run->next_take;
  note_taken(*run, end);
  return outcome;
}

void Prefetcher::note_taken(EpochRun& run, Clock::time_point now) {
  if (!std::exchange(run.first_taken, true)) stats_.first_batch_seconds = seconds_between(run.started, now);
  stats_.worker_capacity += seconds_between(run.counted, now) * static_cast<double>(tuner_.workers());
  run.counted = now;
  if (caller_watch_.due(now)) look_at_caller(now);
}

void Prefetcher::look_at_caller(Clock::time_point now) {
  stats_.caller_stall_seconds += caller_watch_.stalled(now);
  const double process = core::process_seconds();
  stats_.process_seconds += process - std::exchange(process_seconds_, process);
}

void Prefetcher::tune(EpochRun& run) {
  if (options_.most_workers <= options_.workers) return;
  const double seconds = iterated_seconds_ + seconds_since(run.started);
  const std::size_t workers = tuner_.update({.seconds = seconds,
                                             .caller_waits = stats_.wait_seconds,
                                             .worked = worked_seconds_,
                                             .computed = stats_.compute_seconds,
                                             .stalled = stats_.stall_seconds,
                                             .batches = stats_.batches});
  if (workers > threads_.size()) start_all_threads();
}

void Prefetcher::merge(LoaderStats& stats) {
  const LoaderStats add = std::exchange(stats, {});
  stats_.batches += add.batches;
  stats_.samples += add.samples;
  stats_.payload_bytes += add.payload_bytes;
  stats_.read_bytes += add.read_bytes;
  stats_.files_opened += add.files_opened;
  stats_.files_parsed += add.files_parsed;
  stats_.open_seconds += add.open_seconds;
  stats_.read_seconds += add.read_seconds;
  stats_.decode_seconds += add.decode_seconds;
  stats_.function_seconds += add.function_seconds;
  stats_.collate_seconds += add.collate_seconds;
  stats_.copy_seconds += add.copy_seconds;
  stats_.send_seconds += add.send_seconds;
}

LoaderStats Prefetcher::stats() const {
  LoaderStats out;
  {
    const std::scoped_lock lock(mutex_);
    out = stats_;
    out.workers = tuner_.workers();
    out.choice = tuner_.choice();
    out.workers_tried = tuner_.tried();
    out.trial_gain = tuner_.gain();
  }
  out.buffers_allocated = maker_.pool().allocations();
  out.remote = traffic_.total();
  return out;
}

}  // namespace penstock::data
