// Workers wait on work_ for a batch to start, for memory, or to help another worker. The taker waits on ready_ for the
// next batch. A queue that is cancelled is dropped at once: workers hold it until their file operation ends, and throw
// away what they made.

#include "data/loader/prefetcher.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/task_pool.h"
#include "core/thread_time.h"
#include "data/dataset/with_runner.h"
#include "data/sample/value_samples.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// What a thread may hold of whole small files beside the batches.
std::size_t whole_file_bytes(std::uint64_t memory_budget, std::size_t workers) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  return static_cast<std::size_t>(std::clamp(memory_budget / (2 * std::max<std::uint64_t>(workers, 1)), kLeast, kMost));
}

double seconds_since(Prefetcher::Clock::time_point start) {
  return std::chrono::duration<double>(Prefetcher::Clock::now() - start).count();
}

/// What a batch holds, when functions have made it.
std::uint64_t bytes_of(const Prefetcher::Outcome& outcome) {
  const Batch* const batch = std::get_if<Batch>(&outcome);
  return batch == nullptr ? 0 : tensor_bytes(batch->value);
}

/// What a thread makes batches for: one inside of the other where a function of a loader asks another loader.
class Working {
 public:
  explicit Working(const Prefetcher* for_whom) noexcept : for_(for_whom), outer_(std::exchange(innermost(), this)) {}
  ~Working() { innermost() = outer_; }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  static bool is_for(const Prefetcher* whom) noexcept {
    const Working* at = innermost();
    while (at != nullptr && at->for_ != whom) at = at->outer_;
    return at != nullptr;
  }

 private:
  static const Working*& innermost() noexcept {
    thread_local const Working* at = nullptr;
    return at;
  }

  const Prefetcher* for_;
  const Working* outer_;
};

Error too_long(std::int64_t batch) {
  return {ErrorCode::kOutOfMemory,
          core::format("there is no memory left for the indices of batch {}; use a smaller batch_size", batch)};
}

constexpr std::int64_t kMostPrefetch = 1 << 20;

void require_bounded(const LoaderOptions& options) {
  if (options.num_workers > LoaderOptions::kMostWorkers || options.num_workers < LoaderOptions::kAutoWorkers) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("num_workers is {}; it must be from 0 to {}, and more than there are processors gain nothing",
                     +options.num_workers, LoaderOptions::kMostWorkers));
  }
  if (options.prefetch_factor < 1 || options.prefetch_factor > kMostPrefetch) {
    throw Error(ErrorCode::kInvalidArgument, core::format("prefetch_factor is {}; it must be from 1 to {}",
                                                          +options.prefetch_factor, kMostPrefetch));
  }
}

}  // namespace

PrefetchOptions PrefetchOptions::of(const LoaderOptions& options, Trace* trace) {
  constexpr std::size_t kMostProcessors = 16;
  constexpr std::size_t kMostWaiting = 64;
  const bool automatic = options.num_workers == LoaderOptions::kAutoWorkers;
  require_bounded(options);
  const std::size_t workers =
      automatic ? std::min(core::usable_cpus(), kMostProcessors) : static_cast<std::size_t>(options.num_workers);
  return {.workers = workers,
          .most_workers = automatic ? kMostWaiting : workers,
          .ahead = static_cast<std::size_t>(options.prefetch_factor),
          .memory_budget = options.memory_budget,
          .verify = options.verify,
          .trace = trace};
}

Prefetcher::Prefetcher(const BatchMaker& maker, const PrefetchOptions& options)
    : maker_(maker),
      options_(options),
      runner_(runner_of(maker.dataset())),
      figures_(lane("caller")),
      tuner_(options.workers, std::max(options.workers, options.most_workers),
             options.most_workers > options.workers ? core::usable_cpus() : 1) {
  set_up(caller_.call);
  caller_.figures.clock.trace_to(figures_.lane());
  if (runner_ != nullptr) runner_->trace_to(options_.trace);
}

/// For each batch anew, because the tuner may have changed how many workers share the budget.
void Prefetcher::set_up(CallContext& call) const {
  call.verify = options_.verify;
  call.whole_file_bytes = whole_file_bytes(options_.memory_budget, tuner_.workers());
}

Prefetcher::~Prefetcher() {
  if (runner_ != nullptr) runner_->trace_to(nullptr);
  cancel();
  {
    const std::scoped_lock lock(mutex_);
    threads_.quit();
  }
  work_.notify_all();
}

// The destructor waits for ever, because workers use this object; `end` lets the loader decide what to do when one
// hangs in a read that never returns.
bool Prefetcher::end(Clock::duration patience) noexcept {
  cancel();
  std::unique_lock lock(mutex_);
  threads_.quit();
  work_.notify_all();
  return threads_.wait(lock, patience);
}

void Prefetcher::start(Batches batches, std::int64_t first, EpochSeed seed) {
  cancel();
  // As many slots as batches may ever be ahead: the tuner may add workers while the queue is in use.
  const std::size_t most_workers = std::max(options_.workers, options_.most_workers);
  const std::size_t slots = std::max<std::size_t>(most_workers * options_.ahead, 1);
  auto queue = std::make_shared<BatchQueue>(std::move(batches), first, seed, slots, options_.memory_budget);
  {
    const std::scoped_lock lock(mutex_);
    figures_.begin(Clock::now());
    start_threads(static_cast<std::size_t>(std::max<std::int64_t>(queue->left(), 0)));
    queue_ = std::move(queue);
  }
  work_.notify_all();
}

void Prefetcher::push(std::vector<std::int64_t> indices, bool is_left) {
  {
    const std::scoped_lock lock(mutex_);
    if (!queue_ || queue_->left() >= window()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("more than {} asked for and not taken; take one first",
                                                            core::counted(window(), "batch is", "batches are")));
    }
    if (!is_left) start_threads(static_cast<std::size_t>(queue_->left() + 1));
    queue_->push(std::move(indices));
    if (is_left) return queue_->leave_to_taker();
  }
  work_.notify_all();
}

void Prefetcher::start_threads(std::size_t batches) {
  threads_.start(std::min(batches, tuner_.workers()), tuner_.workers());
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
  return queue_ != nullptr;
}

bool Prefetcher::ready() const {
  const std::scoped_lock lock(mutex_);
  return queue_ != nullptr && queue_->left() > 0 && (queue_->is_ready() || queue_->is_left());
}

void Prefetcher::cancel() noexcept {
  QueuePtr dropped;  // outlives the lock, because its batches are released without holding it
  {
    const std::scoped_lock lock(mutex_);
    // Nobody waits for workers here. Each notices by `cancelled`, and a new queue may start before they have.
    dropped = std::exchange(queue_, nullptr);
    if (dropped) {
      dropped->cancelled = true;
      figures_.end(Clock::now());
    }
  }
  work_.notify_all();
  ready_.notify_all();
  // A worker may hold the queue until its file operation ends, but memory is released now.
  if (dropped) dropped->drop_outcomes();
}

std::int64_t Prefetcher::window() const {
  return static_cast<std::int64_t>(std::max<std::size_t>(tuner_.workers() * options_.ahead, 1));
}

bool Prefetcher::works_here() const noexcept { return Working::is_for(this); }

void Prefetcher::work(std::size_t number) {
  const Working here(this);
  Workspace own;
  own.call.crew = &crew_;
  own.figures.clock.trace_to(lane(core::format("worker {}", number)));
  StallWatch watch;
  watch.stalled(Clock::now());
  std::unique_lock lock(mutex_);
  while (true) {
    const auto idle = Clock::now();
    work_.wait(lock,
               [&] { return threads_.quits() || (number < tuner_.workers() && (crew_.wants_help() || has_work())); });
    if (Trace::Lane* const lane = own.figures.clock.lane()) lane->add(Trace::What::kIdle, idle, Clock::now());
    if (threads_.quits()) return;
    // Help comes before a batch of its own: the oldest batch is ready soonest, and fewer blocks are in use at a time.
    if (crew_.wants_help()) {
      help(own, lock);
      continue;
    }
    set_up(own.call);
    QueuePtr queue = queue_;
    const std::int64_t batch = queue->start_next();
    lock.unlock();
    Effort effort;
    Outcome outcome = prepare(*queue, batch, own, effort);
    const std::uint64_t bytes = runner_ == nullptr ? 0 : bytes_of(outcome);
    if (const auto now = Clock::now(); watch.due(now)) effort.stalled = watch.stalled(now);
    lock.lock();
    figures_.add(own.figures.stats, effort);
    const bool is_wanted = !queue->cancelled;
    if (is_wanted) queue->finish(batch, std::move(outcome), bytes);
    if (is_wanted && batch != queue->next()) continue;
    // The thread that wakes needs the lock at once. What was made for a queue that is cancelled, and the queue if this
    // is its last owner, are destroyed without it: that may free much memory, and wait for the interpreter's lock.
    lock.unlock();
    if (is_wanted) ready_.notify_all();
    outcome = Nothing::kCancelled;
    queue.reset();
    lock.lock();
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
  figures_.add(own.figures.stats, effort);
}

Prefetcher::Outcome Prefetcher::prepare(BatchQueue& queue, std::int64_t batch, Workspace& own, Effort& effort) {
  own.call.cancelled = &queue.cancelled;
  own.call.epoch_seed = queue.seed;
  const io::remote::TrafficScope traffic(&traffic_);
  const auto begin = Clock::now();
  const double computed = core::thread_seconds();
  Trace::Lane* const lane = own.figures.clock.lane();
  const auto ask = [&](std::uint64_t bytes) {
    const auto asked = Clock::now();
    // Who makes the batch that it takes holds no other one, and would wait for ever for one to be taken.
    const double waited = &own == &caller_ ? 0 : grant(queue, batch, bytes);
    if (lane != nullptr && waited > 0) lane->add(Trace::What::kMemory, asked, Clock::now(), batch);
    effort.waited += waited;
  };
  RunnerTurn turn(runner_);
  std::size_t samples = 0;
  // Errors travel as outcomes, so that they are thrown where the batch is taken, behind those before it.
  Outcome out = Nothing::kCancelled;
  try {
    Batch made = maker_.make(queue.indices(batch), batch, own, ask);
    samples = made.indices.size();
    out = std::move(made);
  } catch (const Error& error) {
    out = error;
  } catch (const std::bad_alloc&) {
    out = too_long(batch);
  } catch (const std::length_error&) {
    out = too_long(batch);
  } catch (...) {
    out = std::current_exception();
  }
  const auto end = Clock::now();
  if (lane != nullptr) lane->add(Trace::What::kBatch, begin, end, batch);
  effort.worked = std::chrono::duration<double>(end - begin).count() - effort.waited;
  effort.computed = core::thread_seconds() - computed;
  turn.end(effort.worked, samples);
  return out;
}

double Prefetcher::grant(BatchQueue& queue, std::int64_t batch, std::uint64_t bytes) {
  double waited = 0;
  {
    const auto elsewhere = [&] { return runner_ == nullptr ? 0 : runner_->bytes(); };
    std::unique_lock lock(mutex_);
    const auto may_go_on = [&] { return queue.cancelled || queue.may_allocate(batch, bytes, elsewhere()); };
    if (!may_go_on()) {
      const auto begin = Clock::now();
      work_.wait(lock, may_go_on);
      waited = seconds_since(begin);
    }
    if (!queue.cancelled) queue.grant(batch, bytes);
  }
  if (queue.cancelled) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  // A batch that waited for this one to ask may go on now.
  work_.notify_all();
  return waited;
}

Prefetcher::Outcome Prefetcher::take(std::optional<Clock::time_point> deadline) {
  const auto now = Clock::now();
  QueuePtr queue;  // outlives the lock, as in `cancel`
  std::unique_lock lock(mutex_);
  queue = queue_;
  if (!queue) return Nothing::kCancelled;
  const auto begin = figures_.came(now, queue->next(), !queue->is_pushed());
  if (options_.workers == 0 || (queue->left() > 0 && queue->is_left())) {
    lock.unlock();
    return take_inline(queue, begin);
  }
  const auto done = [&] { return queue->cancelled || queue->is_ready(); };
  bool in_time = true;
  if (deadline) {
    in_time = ready_.wait_until(lock, *deadline, done);
  } else {
    ready_.wait(lock, done);
  }
  const auto end = Clock::now();
  figures_.waited(begin, end, queue->next());
  if (queue->cancelled) return Nothing::kCancelled;
  figures_.left(end);
  if (!in_time) return Nothing::kTimedOut;  // the batch stays, for the next take
  Outcome outcome = queue->take();
  figures_.took(end, tuner_.workers());
  tune();
  lock.unlock();
  // A slot and the budget of this batch are free, and more than one worker may wait for either.
  work_.notify_all();
  return outcome;
}

Prefetcher::Outcome Prefetcher::take_inline(const QueuePtr& queue, Clock::time_point begin) {
  const Working here(this);
  Effort effort;
  Outcome outcome = prepare(*queue, queue->next(), caller_, effort);
  const std::scoped_lock lock(mutex_);
  figures_.add(caller_.figures.stats, effort);
  const auto end = Clock::now();
  figures_.waited(begin, end, queue->next());
  if (queue->cancelled) return Nothing::kCancelled;
  figures_.left(end);
  queue->pass();
  figures_.took(end, tuner_.workers());
  return outcome;
}

/// Where a batch is taken, because only then is it known whether the caller had to wait for it.
void Prefetcher::tune() {
  if (options_.most_workers <= options_.workers) return;
  if (tuner_.update(figures_.for_tuner(Clock::now())) > threads_.count()) start_all_threads();
}

LoaderStats Prefetcher::stats() const {
  LoaderStats out = counted();
  out.processors = core::usable_cpus();
  return out;
}

LoaderStats Prefetcher::counted() const {
  LoaderStats out;
  {
    const std::scoped_lock lock(mutex_);
    out = figures_.stats();
    out.workers = tuner_.workers();
    out.choice = tuner_.choice();
    out.workers_tried = tuner_.tried();
    out.trial_gain = tuner_.gain();
  }
  out.buffers_allocated = maker_.allocations();
  out.remote = traffic_.total();
  return out;
}

}  // namespace penstock::data
