// A loader is a Standing (seed, epoch, next batch) over the batches that its BatchOrigin has for seed and epoch. So a
// resumed loader has the same batches, and seek() only sets numbers. The Prefetcher makes the batches.

#include "penstock/loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/forks.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/batch/batch_maker.h"
#include "data/batch/device_batch.h"
#include "data/loader/batch_origin.h"
#include "data/loader/prefetcher.h"
#include "data/loader/resumed_batch.h"
#include "data/trace/trace.h"
#include "device/backend.h"
#include "penstock/sample_stream.h"

namespace penstock {

namespace {

using data::Prefetcher;

using core::refuse;

void check(const LoaderOptions& options) {
  if (options.batch_sampler && (options.batch_size != 1 || options.shuffle || options.sampler || options.drop_last)) {
    refuse("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last");
  }
  if (options.sampler && options.shuffle) refuse("sampler option is mutually exclusive with shuffle");
  if (options.batch_size < 1) {
    refuse(core::format("batch_size should be a positive integer value, but got batch_size={}", options.batch_size));
  }
  if (!std::isfinite(options.timeout) || options.timeout < 0) {
    refuse(core::format("timeout is {}; it must be 0 (for ever) or a number of seconds", options.timeout));
  }
  if (options.timeout > 0 && options.num_workers == 0) {
    refuse(
        "timeout= needs workers, because without them the call that waits makes the batch; set num_workers, or leave "
        "timeout out");
  }
  device::require_device(options.device);
}

}  // namespace

namespace detail {

class LoaderState {
 public:
  /// `stream`: that of which `dataset` has the samples, or null.
  LoaderState(const Dataset& dataset, const SampleStream* stream, LoaderOptions options)
      : options_((check(stream == nullptr ? options : data::as_endless(options)), std::move(options))),
        maker_(dataset, options_.collate, options_.device, options_.memory_budget, options_.on_error),
        origin_(stream == nullptr ? data::ordered_batches(dataset, options_)
                                  : data::streamed_batches(*stream, options_, maker_)),
        trace_(options_.trace.empty() ? nullptr : std::make_unique<data::Trace>(options_.trace)),
        prefetcher_(maker_, data::PrefetchOptions::of(options_, trace_.get())),
        stop_(options_.stop, Stop{&prefetcher_}) {
    here_.of.seed = options_.seed;
  }

  std::int64_t size() const {
    if (const auto batches = origin_->batches()) return *batches;
    refuse("the loader reads a stream, which has no length; count the batches as they come");
  }
  std::uint64_t epoch() const noexcept { return here_.of.epoch; }
  double timeout() const noexcept { return options_.timeout; }
  /// 0 where a batch sampler decides.
  std::int64_t batch_size() const noexcept { return options_.batch_sampler ? 0 : std::int64_t{options_.batch_size}; }

  TimedBatch next(std::optional<double> seconds) {
    if (prefetcher_.works_here()) {
      refuse("the loader was asked for a batch by a function that it calls to make one; take another loader there");
    }
    const std::uint64_t stops = stops_;
    std::optional<Prefetcher::Clock::time_point> deadline;
    if (seconds) deadline = Prefetcher::Clock::now() + to_duration(*seconds);
    if (!turns_.take(deadline)) return {std::nullopt, true};
    const std::unique_ptr<Turns, GivesBack> turn(&turns_);
    require_going_on();
    if (std::exchange(told_none_, false)) return {};
    if (untold_.erase(this_thread()) != 0) return {};
    takers_.insert(this_thread());
    just_loaded_ = false;
    const auto begun = Prefetcher::Clock::now();
    start();
    if (deadline) *deadline += Prefetcher::Clock::now() - begun;  // to make an order is no waiting
    // Who waited for its turn, or began, while all were stopped.
    if (stops != stops_) throw_stopped();
    if (here_.batch >= order_->size()) return end_of_epoch();
    while (here_.batch < order_->size()) {
      TimedBatch out = unpack(prefetcher_.take(deadline));
      const bool left_out = out.batch && out.batch->indices.empty();
      if (!left_out) return out;
      if (ended_) {
        --here_.batch;
        break;
      }
      ++left_out_;
    }
    return end_of_epoch();
  }

  void go_to(const data::Standing& to) {
    prefetcher_.cancel();
    origin_->go(here_, to);
    if (here_ != to) left_out_ = 0;
    here_ = to;
    told_none_ = false;
    takers_.clear();
  }

  void set_epoch(std::uint64_t epoch) {
    told_none_ = false;
    untold_.clear();
    if (epoch == here_.of.epoch && (here_.batch == 0 || just_loaded_)) return;
    ++iteration_;
    go_to({{here_.of.seed, epoch}, 0});
  }

  void restart() {
    ++iteration_;
    told_none_ = false;
    untold_.clear();
    if (here_.batch != 0 && !just_loaded_) go_to({here_.of, 0});
  }
  /// Changes when another iteration begins.
  std::uint64_t iteration() const noexcept { return iteration_; }

  LoaderPosition position() const {
    LoaderPosition out = own_position();
    origin_->describe(out, here_);
    return out;
  }

  void seek(const LoaderPosition& position) {
    const std::int64_t batch = data::resumed_batch(position, own_position(), origin_->batches());
    require_read(position);
    origin_->require(position, here_);
    ++iteration_;
    untold_.clear();
    go_to({{position.seed, position.epoch}, batch});
    origin_->resume(position);
    just_loaded_ = true;
  }

  std::vector<SetAside> set_aside() const { return maker_.policy().listed(); }
  LoaderStats stats() const { return prefetcher_.stats(); }
  void write_trace() const {
    if (!trace_) refuse("no trace was asked for; give the loader a path as its trace option");
    trace_->write();
  }
  void stop() noexcept {
    ++stops_;
    prefetcher_.cancel();
  }
  static void let_go(std::unique_ptr<LoaderState>& state) noexcept {
    if (!state) return;
    if (!state->forked()) return data::let_go(state, state->prefetcher_);
    // The threads stayed in the parent: waiting for them would take for ever.
    static_cast<void>(state.release());
  }
  /// Whether this is another process than the one that has its threads.
  bool forked() const noexcept { return core::forks() != forks_; }
  void require_own_process() const { core::require_own_process(forks_); }

 private:
  /// The position without what the origin alone knows.
  LoaderPosition own_position() const {
    if (!dataset_) dataset_ = origin_->dataset();
    return {.seed = here_.of.seed,
            .epoch = here_.of.epoch,
            .batch = here_.batch,
            .samples = origin_->samples(),
            .batch_size = batch_size(),
            .num_replicas = origin_->replicas(),
            .batches = origin_->batches().value_or(0),
            .order = origin_->order(),
            .dataset = *dataset_};
  }

  static void require_read(const LoaderPosition& position) {
    if (position.read >= 0 && position.held >= 0 && position.held <= position.read) return;
    refuse(
        core::format("the fields 'read' and 'held' of the position are {} and {}, expected 0 or more, and 'held' no "
                     "more than 'read'",
                     position.read, position.held));
  }

  /// Where all batches were left out, the fault is not that of single samples. A position inside of the epoch stands
  /// behind a batch that was not.
  TimedBatch end_of_epoch() {
    const bool none = left_out_ > 0 && left_out_ == here_.batch;
    takers_.erase(this_thread());
    untold_.merge(takers_);
    go_to({{here_.of.seed, here_.of.epoch + 1}, 0});
    told_none_ = none;  // the end of the epoch comes behind the error
    if (none) throw data::none_left(maker_.policy().listed());
    return {};
  }

  /// Of no other thread, also when this one has ended.
  static std::uint64_t this_thread() noexcept {
    static std::atomic<std::uint64_t> threads = 0;
    thread_local const std::uint64_t number = ++threads;
    return number;
  }

  static Prefetcher::Clock::duration to_duration(double seconds) {
    // Beyond a year a deadline is none, and its arithmetic would overflow before long.
    constexpr double kLongest = 365.0 * 24 * 3600;
    const std::chrono::duration<double> wanted(std::clamp(seconds, 0.0, kLongest));
    return std::chrono::duration_cast<Prefetcher::Clock::duration>(wanted);
  }

  void start() {
    if (prefetcher_.running()) return;
    order_ = origin_->begin(here_);
    prefetcher_.start(order_, here_.batch, here_.of);
  }

  TimedBatch unpack(Prefetcher::Outcome outcome) {
    if (const auto* nothing = std::get_if<Prefetcher::Nothing>(&outcome)) {
      if (*nothing == Prefetcher::Nothing::kCancelled) throw_stopped();
      return {std::nullopt, true};
    }
    const auto* const error = std::get_if<Error>(&outcome);
    if (error != nullptr && error->code() == ErrorCode::kCancelled) {
      go_to(here_);  // its function was interrupted: the batch is still to come
      throw *error;
    }
    ended_ = origin_->take(here_.batch++);
    if (error != nullptr) throw *error;
    if (const auto* other = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*other);
    Batch batch = data::deliver(std::get<Batch>(std::move(outcome)));
    origin_->mark(batch, here_.batch - 1);
    return {std::move(batch), false};
  }

  /// Threads that ask for batches take turns. No std::timed_mutex, because ThreadSanitizer does not see all of its
  /// calls.
  class Turns {
   public:
    /// False where another thread had the turn until the deadline.
    bool take(std::optional<Prefetcher::Clock::time_point> deadline) {
      std::unique_lock lock(mutex_);
      const auto is_free = [this] { return !is_taken_; };
      if (!deadline) free_.wait(lock, is_free);
      if (deadline && !free_.wait_until(lock, *deadline, is_free)) return false;
      is_taken_ = true;
      return true;
    }
    void give_back() noexcept {
      const std::scoped_lock lock(mutex_);
      is_taken_ = false;
      free_.notify_one();
    }

   private:
    std::mutex mutex_;
    std::condition_variable free_;
    bool is_taken_ = false;
  };
  struct GivesBack {
    void operator()(Turns* turns) const noexcept { turns->give_back(); }
  };

  [[noreturn]] static void throw_stopped() { throw Error(ErrorCode::kCancelled, "the loader was stopped"); }

  void require_going_on() const {
    if (options_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the loader was stopped by its stop option");
  }

  Turns turns_;
  std::atomic<std::uint64_t> stops_ = 0;  ///< how often `stop` was called
  std::uint64_t iteration_ = 0;
  LoaderOptions options_;
  mutable std::optional<std::string> dataset_;  ///< as BatchOrigin says it, once it was asked
  data::Standing here_;
  std::int64_t left_out_ = 0;  ///< batches of the epoch that OnError left out, as far as they were taken here
  bool just_loaded_ = false;   ///< nothing was asked for since `seek`
  bool told_none_ = false;     ///< the error that no sample could be read was thrown; the end is not told yet
  // Each thread that took batches of an epoch is told its end, so that `while (loader.next())` in several reads one.
  std::set<std::uint64_t> takers_;  ///< threads that asked for batches of the epoch at hand
  std::set<std::uint64_t> untold_;  ///< of epochs that ended, those that do not know it yet
  bool ended_ = false;              ///< the epoch, in place of the last batch that was taken
  data::BatchMaker maker_;
  std::unique_ptr<data::BatchOrigin> origin_;
  Prefetcher::Batches order_;           ///< of the epoch at hand, once begun
  std::unique_ptr<data::Trace> trace_;  ///< written when the threads have ended
  Prefetcher prefetcher_;
  std::uint64_t forks_ = core::forks();
  struct Stop {
    Prefetcher* prefetcher;
    void operator()() const noexcept { prefetcher->cancel(); }
  };
  std::stop_callback<Stop> stop_;  ///< last, so that it ends first
};

}  // namespace detail

DataLoader::DataLoader(Dataset dataset, LoaderOptions options)
    : state_(std::make_unique<detail::LoaderState>(dataset, nullptr, std::move(options))) {}
DataLoader::DataLoader(SampleStream stream, LoaderOptions options)
    : state_(std::make_unique<detail::LoaderState>(stream.samples(), &stream, std::move(options))) {}
DataLoader::DataLoader() noexcept = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&& other) & noexcept {
  if (this == &other) return *this;
  detail::LoaderState::let_go(state_);
  state_ = std::move(other.state_);
  return *this;
}
DataLoader::~DataLoader() { detail::LoaderState::let_go(state_); }

detail::LoaderState& DataLoader::known() const {
  if (state_) return *state_;
  refuse("the DataLoader was made without a dataset, or moved from; assign one to it");
}

detail::LoaderState& DataLoader::usable() const {
  known().require_own_process();
  return *state_;
}

std::int64_t DataLoader::size() const { return known().size(); }

std::optional<Batch> DataLoader::next() {
  const double timeout = known().timeout();
  TimedBatch next = usable().next(timeout > 0 ? std::optional(timeout) : std::nullopt);
  if (next.timed_out) {
    throw Error(
        ErrorCode::kTimeout,
        core::format("DataLoader timed out after {} seconds waiting for batch {} of epoch {}; storage is slower than "
                     "that, so raise timeout or use more workers",
                     timeout, position().batch, epoch()));
  }
  return std::move(next.batch);
}

std::uint64_t DataLoader::begin_iteration() {
  restart();
  return state_->iteration();
}

std::optional<Batch> DataLoader::next_of(std::uint64_t iteration) {
  if (known().iteration() != iteration) {
    refuse("this iteration ended when another began, or its position or epoch was set; begin a new one");
  }
  return next();
}

TimedBatch DataLoader::next_for(double seconds) {
  if (!(seconds >= 0)) refuse(core::format("the time to wait is {} seconds; it must be 0 or more", seconds));
  return usable().next(seconds);
}

void DataLoader::set_epoch(std::uint64_t epoch) { usable().set_epoch(epoch); }
std::uint64_t DataLoader::epoch() const noexcept { return state_ ? state_->epoch() : 0; }
void DataLoader::restart() { usable().restart(); }
const LoaderPosition DataLoader::position() const { return known().position(); }
void DataLoader::seek(const LoaderPosition& position) { usable().seek(position); }
const std::vector<SetAside> DataLoader::set_aside() const { return usable().set_aside(); }
const LoaderStats DataLoader::stats() const { return usable().stats(); }
void DataLoader::write_trace() const { usable().write_trace(); }
void DataLoader::stop() noexcept {
  if (state_ && !state_->forked()) state_->stop();
}

}  // namespace penstock
