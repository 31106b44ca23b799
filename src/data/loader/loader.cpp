// A loader is a position (seed, epoch, next batch) over the order that its sampler makes of seed and epoch. So a
// resumed loader makes the same order anew, and seek() only sets numbers. The Prefetcher makes the batches; of a
// stream, a feed reads the samples.

#include "penstock/loader.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "core/counted.h"
#include "core/forks.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/batch/batch_maker.h"
#include "data/batch/device_batch.h"
#include "data/dataset_impl.h"
#include "data/loader/dataset_name.h"
#include "data/loader/dealing.h"
#include "data/loader/prefetcher.h"
#include "data/loader/stream_options.h"
#include "data/loader/taken_indices.h"
#include "data/trace/trace.h"
#include "device/backend.h"
#include "penstock/ops.h"
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
  device::require_device(options.device);
}

/// Whether both make batches of as many samples with all ranks together.
bool step_alike(const LoaderPosition& position, std::int64_t batch_size, std::int64_t ranks) {
  std::int64_t before = 0;
  std::int64_t now = 0;
  return !__builtin_mul_overflow(position.batch_size, position.num_replicas, &before) &&
         !__builtin_mul_overflow(batch_size, ranks, &now) && before == now;
}

}  // namespace

namespace detail {

class LoaderState {
 public:
  LoaderState(Dataset dataset, LoaderOptions options)
      : options_((check(options), std::move(options))),
        dealing_(dataset, options_),
        batch_sampler_(dealing_.batches()),
        seed_(options_.seed),
        dataset_(dataset),
        taken_(dealing_),
        maker_(std::move(dataset), options_.collate, options_.device, options_.memory_budget, options_.on_error),
        trace_(options_.trace.empty() ? nullptr : std::make_unique<data::Trace>(options_.trace)),
        prefetcher_(maker_, data::PrefetchOptions::of(options_, trace_.get())),
        stop_(options_.stop, Stop{&prefetcher_}) {}
  /// Of a stream the order is that of the batches' numbers; the feed knows the samples.
  LoaderState(const SampleStream& stream, const LoaderOptions& options)
      : LoaderState(stream.samples(), data::as_endless(options)) {
    stream_ = stream;
    options_.ranks = options.ranks;
    options_.remainder = options.remainder;
    dataset_ = data::DatasetName(stream);
  }

  std::int64_t size() const {
    if (stream_) refuse("the loader reads a stream, which has no length; count the batches as they come");
    return batch_sampler_.size();
  }
  std::uint64_t epoch() const noexcept { return epoch_; }
  double timeout() const noexcept { return options_.timeout; }
  /// 0 where a batch sampler decides.
  std::int64_t batch_size() const noexcept { return options_.batch_sampler ? 0 : options_.batch_size; }

  TimedBatch next(std::optional<double> seconds) {
    const std::lock_guard lock(next_mutex_);
    require_going_on();
    if (std::exchange(told_none_, false)) return {};
    just_loaded_ = false;
    start();
    if (next_ >= epoch_batches_->size()) return end_of_epoch();
    std::optional<Prefetcher::Clock::time_point> deadline;
    if (seconds) deadline = Prefetcher::Clock::now() + to_duration(*seconds);
    while (next_ < epoch_batches_->size()) {
      TimedBatch out = unpack(prefetcher_.take(deadline));
      const bool left_out = out.batch && out.batch->indices.empty();
      if (!left_out) return out;
      if (stream_ended_) {
        --next_;
        break;
      }
      ++left_out_;
    }
    return end_of_epoch();
  }

  void go_to(std::uint64_t epoch, std::int64_t batch) {
    prefetcher_.cancel();
    if (epoch != epoch_) epoch_batches_ = nullptr;
    if (epoch != epoch_ || batch != next_) leave_stream();
    epoch_ = epoch;
    next_ = batch;
    begin_ = batch;
    left_out_ = 0;
    told_none_ = false;
    expected_.clear();
  }

  void set_epoch(std::uint64_t epoch) {
    if (epoch == epoch_ && (next_ == 0 || just_loaded_)) return;
    go_to(epoch, 0);
  }

  void restart() {
    if (next_ != 0 && !just_loaded_) go_to(epoch_, 0);
  }

  LoaderPosition position() const {
    return {.seed = seed_,
            .epoch = epoch_,
            .batch = next_,
            .samples = samples(),
            .batch_size = batch_size(),
            .num_replicas = replicas(),
            .batches = stream_ ? 0 : size(),
            .order = order(),
            .read = place_.read,
            .held = place_.held,
            .dataset = dataset_.name(),
            .indices = epoch_batches_ ? taken_.of(epoch_batches_, next_) : expected_};
  }

  void seek(const LoaderPosition& position) {
    const std::int64_t samples = this->samples();
    if (position.samples != samples) {
      refuse(
          core::format("the position was taken in a dataset of {}, but this one has {}; go on with the dataset it was "
                       "taken from",
                       core::counted(static_cast<std::uint64_t>(position.samples), "sample"), samples));
    }
    require_batch_size(position);
    if (!position.order.empty() && position.batch > 0 && position.order != order()) {
      refuse(
          core::format("the position was taken in an order that is {}, but this loader's is {}; go on with the same "
                       "shuffle and sampler, or from the beginning of an epoch",
                       position.order, order()));
    }
    const std::int64_t batch = own_batch(position);
    if (batch < 0 || (!stream_ && batch > size())) {
      refuse(
          core::format("the position stands after batch {}, but an epoch has {}; go on with the same batch_size and "
                       "drop_last",
                       batch, stream_ ? 0 : size()));
    }
    require_read(position);
    require_dataset(position);
    epoch_batches_ = nullptr;
    if (seed_ != position.seed) leave_stream();
    seed_ = position.seed;
    go_to(position.epoch, batch);
    place_ = {.read = position.read, .held = position.held};
    expected_ = position.indices;
    just_loaded_ = true;
  }

  bool tells_other_size(const LoaderPosition& position) const {
    return position.batch_size != 0 && batch_size() != 0 && position.batch_size != batch_size();
  }

  void require_batch_size(const LoaderPosition& position) const {
    if (position.batch == 0 || !tells_other_size(position)) return;
    const std::int64_t ranks = replicas();
    if (position.num_replicas == ranks) {
      refuse(
          core::format("the position was taken with batches of {}, but this loader makes batches of {}; go on with the "
                       "same batch_size, or from the beginning of an epoch",
                       position.batch_size, batch_size()));
    }
    if (step_alike(position, batch_size(), ranks)) return;
    refuse(core::format(
        "the position was taken with batches of {} on each of {}, but this loader makes batches of {} on each "
        "of {}; go on with the same batch_size, or with one that gives as many samples on all ranks "
        "together, or from the beginning of an epoch",
        position.batch_size, core::counted(static_cast<std::uint64_t>(position.num_replicas), "rank"), batch_size(),
        ranks));
  }

  /// How many batches this rank would have taken where as many samples were, by as many ranks as there are now.
  std::int64_t own_batch(const LoaderPosition& position) const {
    const std::int64_t ranks = replicas();
    if (position.num_replicas == ranks || position.batch == 0) return position.batch;
    if (position.num_replicas < 1) {
      refuse(core::format("the position was taken with {} ranks, expected 1 or more", position.num_replicas));
    }
    if (position.batch == position.batches) return size();  // its epoch has ended, also where samples were left out
    if (tells_other_size(position)) return position.batch;  // step_alike
    std::int64_t all = 0;
    const bool fits = !__builtin_mul_overflow(position.batch, position.num_replicas, &all);
    if (fits && all % ranks == 0) return all / ranks;
    refuse(core::format(
        "the position was taken after batch {} of each of {}, and these batches do not divide among {}; go "
        "on with {}, or from a position after more or fewer batches, or keep batch_size times ranks as it "
        "was",
        position.batch, core::counted(static_cast<std::uint64_t>(position.num_replicas), "rank"),
        core::counted(static_cast<std::uint64_t>(ranks), "rank"), position.num_replicas));
  }

  std::vector<SetAside> set_aside() const { return maker_.policy().listed(); }
  LoaderStats stats() const { return prefetcher_.stats(); }
  void write_trace() const {
    if (!trace_) refuse("no trace was asked for; give the loader a path as its trace option");
    trace_->write();
  }
  void stop() noexcept { prefetcher_.cancel(); }
  static void let_go(std::unique_ptr<LoaderState> state) noexcept {
    Prefetcher& prefetcher = state->prefetcher_;
    data::let_go(std::move(state), prefetcher);
  }
  /// Whether this is another process than the one that has its threads.
  bool forked() const noexcept { return core::forks() != forks_; }

 private:
  std::int64_t samples() const { return stream_ ? 0 : maker_.dataset().size(); }
  std::int64_t replicas() const { return options_.ranks && stream_ ? options_.ranks->size : batch_sampler_.replicas(); }
  std::string order() const { return stream_ ? "stream" : std::string(batch_sampler_.kind()); }

  /// A source that gives its samples once cannot go back.
  void require_read(const LoaderPosition& position) const {
    if (position.read < 0 || position.held < 0 || position.held > position.read) {
      refuse(
          core::format("the fields 'read' and 'held' of the position are {} and {}, expected 0 or more, and 'held' no "
                       "more than 'read'",
                       position.read, position.held));
    }
    if (stream_ && position.batch > 0 && position.read == 0) {
      refuse(
          "the position stands inside of an epoch of a stream, but lacks the field 'read', how many samples were read "
          "by "
          "then; go on from a whole position, or from the beginning of an epoch");
    }
    const bool stays = position.seed == seed_ && position.epoch == epoch_ && position.batch == next_;
    if (!stream_ || !feed_ || stays || stream_->can_begin_again()) return;
    refuse(
        "the stream can be read once, and that has begun, so that the loader cannot go to another position; give "
        "stream() a function that makes what gives the samples, or make a new loader of a new stream");
  }

  void require_dataset(const LoaderPosition& position) const {
    if (position.batch == 0 || position.dataset.empty() || position.dataset == dataset_.name()) return;
    refuse(
        core::format("the position was taken in another dataset: {}, but this one is {}; go on with the dataset it was "
                     "taken from, or where only names have changed, clear the position's field 'dataset'",
                     position.dataset, dataset_.name()));
  }

  void leave_stream() {
    maker_.take_from(nullptr);
    feed_ = nullptr;
    place_ = {};
    stream_ended_ = false;
  }

  void begin_stream() {
    const auto set_aside = [this, epoch = epoch_](std::int64_t number, const Error& error) {
      return maker_.policy().set_aside(number, epoch, maker_.dataset().impl().describe(number), error);
    };
    const data::StreamFeed::Place place{.seed = {.seed = seed_, .epoch = epoch_},
                                        .batch = next_,
                                        .place = next_ > 0 ? std::optional(place_) : std::nullopt};
    feed_ = std::make_shared<data::StreamFeed>(*stream_, options_, place, set_aside);
    maker_.take_from(feed_);
  }

  /// Where all batches were left out, the fault is not that of single samples.
  TimedBatch end_of_epoch() {
    const bool none = left_out_ > 0 && left_out_ == next_ - begin_;
    go_to(epoch_ + 1, 0);
    told_none_ = none;  // the end of the epoch comes behind the error
    if (none) throw maker_.policy().none_left();
    return {};
  }

  static Prefetcher::Clock::duration to_duration(double seconds) {
    // Beyond a year a deadline is none, and its arithmetic would overflow before long.
    constexpr double kLongest = 365.0 * 24 * 3600;
    const std::chrono::duration<double> wanted(std::clamp(seconds, 0.0, kLongest));
    return std::chrono::duration_cast<Prefetcher::Clock::duration>(wanted);
  }

  void start() {
    if (prefetcher_.running()) return;
    if (!epoch_batches_) epoch_batches_ = make_batches();
    require_same_indices();
    if (stream_ && !feed_) begin_stream();
    prefetcher_.start(epoch_batches_, next_, {.seed = seed_, .epoch = epoch_});
  }

  Prefetcher::Batches make_batches() const {
    try {
      auto batches = std::make_shared<const BatchOrder>(batch_sampler_.batches(seed_, epoch_));
      if (batches->size() != batch_sampler_.size()) {
        refuse(core::format("the batch sampler gives {}, but its size() is {}",
                            core::counted(batches->size(), "batch", "batches"), batch_sampler_.size()));
      }
      return batches;
    } catch (const std::bad_alloc&) {
      throw_order_too_large();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw_order_too_large();
      throw;
    }
  }

  /// A sampler of the program's own may draw from generators that no position knows.
  void require_same_indices() {
    if (expected_.empty() || next_ != begin_ || next_ >= epoch_batches_->size()) return;
    const std::string now = taken_.of(epoch_batches_, next_);
    if (data::TakenIndices::agree(expected_, now)) return;
    throw Error(
        ErrorCode::kChanged,
        core::format("the sampler gives other indices for the {} of epoch {} that were taken before the position "
                     "was: going on would lose samples and repeat others; have the sampler draw from seed and "
                     "epoch alone, or seed what it draws from as before, or begin an epoch",
                     core::counted(static_cast<std::uint64_t>(next_), "batch", "batches"), epoch_));
  }

  [[noreturn]] void throw_order_too_large() const {
    throw Error(ErrorCode::kOutOfMemory,
                core::format("the order of an epoch of {} from {} takes more memory than there is (4 "
                             "or 8 bytes a sample); use a part of the dataset",
                             core::counted(static_cast<std::uint64_t>(size()), "batch", "batches"),
                             core::counted(static_cast<std::uint64_t>(maker_.dataset().size()), "sample")));
  }

  TimedBatch unpack(Prefetcher::Outcome outcome) {
    if (const auto* nothing = std::get_if<Prefetcher::Nothing>(&outcome)) {
      if (*nothing == Prefetcher::Nothing::kCancelled) throw Error(ErrorCode::kCancelled, "the loader was stopped");
      return {std::nullopt, true};
    }
    const auto* const error = std::get_if<Error>(&outcome);
    if (error != nullptr && error->code() == ErrorCode::kCancelled) {
      go_to(epoch_, next_);  // its function was interrupted: the batch is still to come
      throw *error;
    }
    if (feed_) {
      stream_ended_ = feed_->ends_at(next_);
      place_ = feed_->forget(next_);
    }
    ++next_;
    if (error != nullptr) throw *error;
    if (const auto* other = std::get_if<std::exception_ptr>(&outcome)) std::rethrow_exception(*other);
    Batch batch = data::deliver(std::get<Batch>(std::move(outcome)));
    dealing_.mark(batch, next_ - 1);
    if (stream_ && options_.remainder == Remainder::kExact && !batch.valid.defined() && batch.size() > 0) {
      batch.valid = full(Shape{batch.size()}, true, DType::boolean);
    }
    return {std::move(batch), false};
  }

  void require_going_on() const {
    if (options_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the loader was stopped by its stop option");
  }

  std::mutex next_mutex_;  ///< threads that ask for batches take turns
  LoaderOptions options_;
  data::Dealing dealing_;
  BatchSampler batch_sampler_;
  std::uint64_t seed_ = 0;
  std::uint64_t epoch_ = 0;
  std::int64_t next_ = 0;      ///< batch of the epoch
  std::int64_t begin_ = 0;     ///< where in the epoch the iteration began
  std::int64_t left_out_ = 0;  ///< batches since then that OnError left out
  bool just_loaded_ = false;   ///< nothing was asked for since `seek`
  bool told_none_ = false;     ///< the error that no sample could be read was thrown; the end is not told yet
  std::string expected_;       ///< LoaderPosition::indices of `seek`
  data::DatasetName dataset_;
  data::TakenIndices taken_;
  Prefetcher::Batches epoch_batches_;  ///< of seed_ and epoch_, once known
  std::optional<SampleStream> stream_;
  std::shared_ptr<data::StreamFeed> feed_;  ///< of seed_ and epoch_, once begun
  data::StreamPlace place_;                 ///< LoaderPosition::read and held
  bool stream_ended_ = false;               ///< in place of the last batch that was taken
  data::BatchMaker maker_;
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
    : state_(std::make_unique<detail::LoaderState>(std::move(dataset), std::move(options))) {}
DataLoader::DataLoader(SampleStream stream, LoaderOptions options)
    : state_(std::make_unique<detail::LoaderState>(stream, options)) {}
DataLoader::DataLoader() noexcept = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&& other) & noexcept {
  if (this == &other) return *this;
  const DataLoader before(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
DataLoader::~DataLoader() {
  if (!state_) return;
  if (state_->forked()) {
    // The threads stayed in the parent: waiting for them would take for ever.
    static_cast<void>(state_.release());
  } else {
    detail::LoaderState::let_go(std::move(state_));
  }
}

detail::LoaderState& DataLoader::known() const {
  if (state_) return *state_;
  refuse("the DataLoader was made without a dataset, or moved from; assign one to it");
}

detail::LoaderState& DataLoader::usable() const {
  if (!known().forked()) return *state_;
  refuse(
      "the DataLoader was made before this process was forked, and its threads stayed in the parent; make a new one in "
      "the child");
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

TimedBatch DataLoader::next_for(double seconds) {
  if (!(seconds >= 0)) refuse(core::format("the time to wait is {} seconds; it must be 0 or more", seconds));
  return usable().next(seconds);
}

void DataLoader::set_epoch(std::uint64_t epoch) { usable().set_epoch(epoch); }
std::uint64_t DataLoader::epoch() const noexcept { return state_ ? state_->epoch() : 0; }
void DataLoader::restart() { usable().restart(); }
LoaderPosition DataLoader::position() const { return known().position(); }
void DataLoader::seek(const LoaderPosition& position) { usable().seek(position); }
std::vector<SetAside> DataLoader::set_aside() const { return usable().set_aside(); }
LoaderStats DataLoader::stats() const { return usable().stats(); }
void DataLoader::write_trace() const { usable().write_trace(); }
void DataLoader::stop() noexcept {
  if (state_ && !state_->forked()) state_->stop();
}

}  // namespace penstock
