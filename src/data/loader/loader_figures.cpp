#include "data/loader/loader_figures.h"

#include <utility>

#include "core/thread_time.h"

namespace penstock::data {

namespace {

double seconds_from(LoaderFigures::Clock::time_point begin, LoaderFigures::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void LoaderFigures::begin(Clock::time_point now) {
  started_ = counted_ = now;
  first_taken_ = false;
  given_.reset();
  // Stall times are sampled at intervals. An epoch may be shorter than one interval, so sampling continues from epoch
  // to epoch.
  if (!watch_.due(now)) return;
  watch_.stalled(now);
  process_seconds_ = core::process_seconds();
}

void LoaderFigures::end(Clock::time_point now) { iterated_seconds_ += seconds_from(started_, now); }

LoaderFigures::Clock::time_point LoaderFigures::came(Clock::time_point now, std::int64_t next, bool is_order) {
  if (!given_) return is_order ? started_ : now;
  stats_.caller_seconds += seconds_from(*given_, now);
  if (caller_ != nullptr) caller_->add(Trace::What::kCaller, *given_, now, next - 1);
  return now;
}

void LoaderFigures::waited(Clock::time_point begin, Clock::time_point end, std::int64_t next) {
  stats_.wait_seconds += seconds_from(begin, end);
  if (caller_ != nullptr) caller_->add(Trace::What::kWait, begin, end, next);
}

void LoaderFigures::took(Clock::time_point now, std::size_t workers) {
  if (!std::exchange(first_taken_, true)) stats_.first_batch_seconds = seconds_from(started_, now);
  stats_.worker_capacity += seconds_from(counted_, now) * static_cast<double>(workers);
  counted_ = now;
  if (!watch_.due(now)) return;
  stats_.caller_stall_seconds += watch_.stalled(now);
  const double process = core::process_seconds();
  stats_.process_seconds += process - std::exchange(process_seconds_, process);
}

WorkerTuner::Figures LoaderFigures::for_tuner(Clock::time_point now) const {
  return {.seconds = iterated_seconds_ + seconds_from(started_, now),
          .caller_waits = stats_.wait_seconds,
          .worked = worked_seconds_,
          .computed = stats_.compute_seconds,
          .stalled = stats_.stall_seconds,
          .batches = stats_.batches};
}

void LoaderFigures::add(LoaderStats& counted, const Effort& effort) {
  worked_seconds_ += effort.worked;
  stats_.compute_seconds += effort.computed;
  stats_.budget_seconds += effort.waited;
  stats_.stall_seconds += effort.stalled;
  const LoaderStats add = std::exchange(counted, {});
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

}  // namespace penstock::data
