// How a batch is waited for while signals are answered. With workers the caller waits in short periods and looks for
// signals between them. Without, it makes the batch itself if the last one was quick, else has a thread make it that
// can be left behind. A batch that is there when a signal's handler raises is kept for the next call (kept_batch.h).

#include "loader/loader.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <system_error>
#include <utility>

#include "bindings.h"
#include "content/value.h"
#include "core/forks.h"
#include "core/format.h"
#include "data/dataset/with_runner.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/sample_stream.h"

namespace penstock::python {
namespace {

using Clock = std::chrono::steady_clock;

/// A batch that took longer than this in the caller's thread has the next one made in another.
constexpr std::chrono::milliseconds kQuick{20};

/// act(loader) without the GIL, in which the loader is let go of too: the last one to do so waits for workers.
template <class Act>
auto unlocked(std::shared_ptr<DataLoader> held, Act act) {
  const ReleasedGil released;
  const std::shared_ptr<DataLoader> loader = std::move(held);
  return act(*loader);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

PyLoader::PyLoader(nb::object dataset, LoaderOptions options, nb::object parts, std::shared_ptr<Raised> raised,
                   std::shared_ptr<data::Runner> runner)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      parts_(std::move(parts)),
      raised_(std::move(raised)),
      forks_(core::forks()) {
  is_stream_ = is_stream(dataset_);
  if (is_stream_) {
    const auto& given = nb::cast<const SampleStream&>(nb::object(dataset_.attr("_native")));
    const auto stream = runner == nullptr ? given : given.with(data::with_runner(given.samples(), std::move(runner)));
    loader_ = std::make_shared<DataLoader>(stream, options_);
  } else {
    const auto& given = nb::cast<const Dataset&>(dataset_);
    loader_ =
        std::make_shared<DataLoader>(runner == nullptr ? given : data::with_runner(given, std::move(runner)), options_);
  }
}

PyLoader::~PyLoader() { clear(); }

void PyLoader::clear() noexcept {
  const nb::object parts = std::move(parts_);  // the last to go: workers use them
  const KeptBatch kept = std::exchange(kept_, {});
  {
    // Workers may wait for the GIL, to ask a Python sampler or to let go of a Python object.
    std::shared_ptr<DataLoader> last = std::move(loader_);
    const ReleasedGil released;
    last.reset();
  }
  options_.sampler.reset();
  options_.batch_sampler.reset();
}

std::shared_ptr<DataLoader> PyLoader::usable() const {
  if (loader_ == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, "the DataLoader is closed; make a new one");
  }
  core::require_own_process(forks_);
  if (left_behind_.hangs()) {
    throw Error(ErrorCode::kCancelled,
                "a call of the DataLoader that was interrupted still hangs, in a read or in a function of the program; "
                "wait until it ends, or make a new loader");
  }
  return loader_;
}

template <class Work>
auto PyLoader::locked(Work work) {
  std::shared_ptr<DataLoader> held = usable();
  const nb::object parts = parts_in_use();
  try {
    return unlocked(std::move(held), [&](DataLoader& loader) {
      const std::scoped_lock lock(turns_->mutex);
      return work(loader);
    });
  } catch (const Error&) {
    raised_->rethrow();
    throw;
  }
}

std::int64_t PyLoader::size() {
  return locked([](DataLoader& loader) { return loader.size(); });
}

std::uint64_t PyLoader::epoch() {
  return locked([](DataLoader& loader) { return loader.epoch(); });
}

void PyLoader::set_epoch(std::uint64_t epoch) {
  kept_.drop();
  locked([this, epoch](DataLoader& loader) {
    turns_->require_at_rest("loader");
    ++turns_->iteration;
    loader.set_epoch(epoch);
  });
}

LoaderPosition PyLoader::position() {
  settle();
  LoaderPosition position = locked([](DataLoader& loader) { return loader.position(); });
  if (!kept_.holds()) return position;
  if (is_stream_) return before_;
  --position.batch;
  position.indices.clear();  // those of one batch more
  return position;
}

void PyLoader::seek(const LoaderPosition& position) {
  locked([&](DataLoader& loader) {
    turns_->require_at_rest("loader");
    loader.seek(position);
    ++turns_->iteration;
  });
  kept_.drop();
}

LoaderStats PyLoader::stats() {
  return unlocked(usable(), [](DataLoader& loader) { return loader.stats(); });
}

std::vector<SetAside> PyLoader::set_aside() {
  return unlocked(usable(), [](DataLoader& loader) { return loader.set_aside(); });
}

void PyLoader::stop() noexcept {
  if (loader_ == nullptr || core::forks() != forks_) return;
  raised_->stopped = true;
  unlocked(loader_, [](DataLoader& loader) { loader.stop(); });
}

void PyLoader::write_trace() {
  unlocked(usable(), [this](DataLoader& loader) {
    const std::scoped_lock lock(turns_->mutex);
    loader.write_trace();
  });
}

void PyLoader::close() {
  stop();
  const bool traced = loader_ != nullptr && core::forks() == forks_ && !options_.trace.empty();
  try {
    if (traced) write_trace();
  } catch (...) {
    clear();
    throw;
  }
  clear();
}

std::uint64_t PyLoader::begin() {
  kept_.drop();
  return locked([this](DataLoader& loader) {
    turns_->require_at_rest("loader");
    loader.restart();
    return ++turns_->iteration;
  });
}

void PyLoader::abandon(std::uint64_t iteration) noexcept {
  if (iteration == turns_->iteration) stop();
}

nb::object PyLoader::next(std::uint64_t iteration) {
  settle();
  raised_->stopped = false;
  nb::object states;
  if (options_.num_workers > 0) states = states_before_first();
  std::optional<Batch> batch = next_of(iteration);
  if (!batch) {
    check_signals();
    return {};
  }
  try {
    return hand_over(*std::move(batch), states);
  } catch (...) {
    if (iteration != turns_->iteration) kept_.drop();  // the handler began another, or set its position
    throw;
  }
}

std::optional<Batch> PyLoader::next_of(std::uint64_t iteration) {
  if (kept_.holds() && iteration == turns_->iteration) return kept_.take();
  if (options_.num_workers > 0) return next_prepared(iteration);
  return is_quick_ || !signals_arrive_here() ? next_here(iteration) : next_on_thread(iteration);
}

nb::object PyLoader::hand_over(Batch batch, const nb::object& states) {
  if (states.is_valid()) {
    try {
      warn_of_shared_generators(states);
    } catch (...) {  // also where the program makes errors of warnings
      kept_.keep(std::move(batch));
      throw;
    }
  }
  return kept_.hand_over(std::move(batch), [](const Batch& made) {
    nb::object value = to_python(made.value);
    return made.valid.defined() ? nb::object(nb::make_tuple(value, nb::cast(made.valid))) : value;
  });
}

template <class Take>
std::optional<Batch> PyLoader::take(Iterations& turns, std::uint64_t iteration, Take take_next) {
  const Making making(turns, "loader");
  if (iteration != turns.iteration) {
    throw Error(ErrorCode::kInvalidArgument,
                "this iteration ended when another began, or its position or epoch was set; take a new iterator");
  }
  if (iteration == turns.ended) return std::nullopt;
  bool waiting = false;
  std::optional<Batch> batch = take_next(waiting);
  if (!batch && !waiting) turns.ended = iteration;
  return batch;
}

nb::object PyLoader::states_before_first() {
  if (!parts_.is_valid()) return {};  // it is closed, which the next step says
  const bool may_draw_here =
      !parts_["sampler"].is_none() || !parts_["batch_sampler"].is_none();  // the program's own sampler
  if (std::exchange(watched_, true) || may_draw_here || is_stream_) return {};
  return nb::module_::import_("penstock._batches.functions").attr("random_states")();
}

void PyLoader::warn_of_shared_generators(const nb::object& states) {
  const nb::object functions = nb::module_::import_("penstock._batches.functions");
  const nb::object drawn = functions.attr("drawn_since")(states);
  if (nb::len(drawn) == 0) return;
  const nb::object text = functions.attr("shared_generators")(drawn);
  warn(PyExc_UserWarning, name_from(text));
}

std::optional<Batch> PyLoader::next_prepared(std::uint64_t iteration) {
  using Seconds = std::chrono::duration<double>;
  const double limit = options_.timeout > 0 ? options_.timeout : std::numeric_limits<double>::infinity();
  const Clock::time_point start = Clock::now();
  for (;;) {
    const double patience = std::clamp(limit - seconds_since(start), 0.0, Seconds(kSignalPeriod).count());
    bool timed_out = false;
    std::optional<Batch> batch = locked([&](DataLoader& loader) {
      if (is_stream_) before_ = loader.position();
      return take(*turns_, iteration, [&](bool& waiting) {
        TimedBatch next = loader.next_for(patience);
        waiting = timed_out = next.timed_out;
        return std::move(next.batch);
      });
    });
    if (!timed_out) return batch;
    check_signals();
    if (seconds_since(start) >= limit) {
      throw Error(ErrorCode::kTimeout,
                  core::format("DataLoader timed out after {} seconds waiting for a batch; raise timeout or use more "
                               "workers",
                               limit));
    }
  }
}

std::optional<Batch> PyLoader::next_here(std::uint64_t iteration) {
  const Clock::time_point start = Clock::now();
  std::optional<Batch> batch = locked([&](DataLoader& loader) {
    if (is_stream_) before_ = loader.position();
    return take(*turns_, iteration, [&](bool&) { return loader.next(); });
  });
  is_quick_ = Clock::now() - start < kQuick;
  return batch;
}

std::optional<Batch> PyLoader::next_on_thread(std::uint64_t iteration) {
  const Clock::time_point start = Clock::now();
  const nb::object parts = parts_in_use();
  const auto before = is_stream_ ? std::make_shared<LoaderPosition>() : nullptr;
  // It owns all it uses: it may be left behind.
  std::future<std::optional<Batch>> result = run_behind(std::make_shared<std::packaged_task<std::optional<Batch>()>>(
      [iteration, turns = turns_, loader = usable(), before, current = device::Current()]() mutable {
        current.adopt();
        const std::shared_ptr<DataLoader> held = std::move(loader);
        const std::scoped_lock lock(turns->mutex);
        if (before) *before = held->position();
        return take(*turns, iteration, [&](bool&) { return held->next(); });
      }));
  while (!came(result, kSignalPeriod)) {
    try {
      check_signals();
    } catch (...) {
      stop();
      came(result, kStopPatience);
      left_behind_ = {std::move(result), iteration, before};
      throw;
    }
  }
  is_quick_ = Clock::now() - start < kQuick;
  try {
    std::optional<Batch> batch = result.get();
    if (before) before_ = *before;
    return batch;
  } catch (const Error&) {
    raised_->rethrow();
    throw;
  }
}

bool PyLoader::LeftBehind::hangs() const {
  return result.valid() && result.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void PyLoader::settle() {
  if (!left_behind_.result.valid() || left_behind_.hangs()) return;
  LeftBehind left = std::exchange(left_behind_, {});
  const bool is_wanted = left.iteration == turns_->iteration;
  try {
    std::optional<Batch> batch = left.result.get();
    if (batch && is_wanted) kept_.keep(*std::move(batch));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) return;  // the batch is still to come
    if (is_wanted) kept_.keep(std::current_exception());
  }
  if (left.before) before_ = *left.before;
}

}  // namespace penstock::python
