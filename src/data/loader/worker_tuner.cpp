#include "data/loader/worker_tuner.h"

#include <algorithm>
#include <utility>

namespace penstock::data {

namespace {

constexpr double kLeastSeconds = 0.05;        // of a round; shorter ones are chance
constexpr std::uint64_t kLeastBatches = 4;    // and of each worker two
constexpr double kWaitingCaller = 0.05;       // of the time, before the loader counts as the wall
constexpr double kComputingWorkers = 0.6;     // of their time; then more of them would only share the processors
constexpr double kBusyProcessors = 0.75;      // of all; then more workers could gain a third at most
constexpr double kMostAtOnce = 8;             // times the workers
constexpr double kGain = 1.15;                // what more workers must bring
constexpr double kNoLoss = 0.95;              // what fewer workers must keep
constexpr std::uint64_t kRestingRounds = 32;  // after a trial that brought nothing

}  // namespace

bool WorkerTuner::round_ended(const Figures& figures) const noexcept {
  return figures.batches - begin_.batches >= std::max<std::uint64_t>(kLeastBatches, 2 * workers_) &&
         figures.seconds - begin_.seconds >= kLeastSeconds;
}

std::size_t WorkerTuner::update(const Figures& figures) noexcept {
  if (!round_ended(figures)) return workers_;
  if (warming_) {
    warming_ = false;
  } else {
    end_round(figures);
  }
  begin_round(figures);
  return workers_;
}

void WorkerTuner::end_round(const Figures& figures) noexcept {
  const double seconds = figures.seconds - begin_.seconds;
  const double rate = static_cast<double>(figures.batches - begin_.batches) / seconds;
  const std::optional<Trial> trial = std::exchange(trial_, std::nullopt);
  if (trial && !keeps(*trial, rate)) {
    workers_ = trial->before;
    warming_ = true;
    rest_ = kRestingRounds;
    return;
  }
  if (rest_ > 0) {
    --rest_;
    return;
  }
  const double working = figures.worked - begin_.worked;
  const double computing = figures.computed - begin_.computed;
  const bool caller_waits = figures.caller_waits - begin_.caller_waits > kWaitingCaller * seconds;
  const double busy = kBusyProcessors * seconds * static_cast<double>(processors_);
  // Workers that were of use while storage answered late only take the processors from each other when it is fast.
  const bool could_run = computing + figures.stalled - begin_.stalled > busy;
  if (could_run && workers_ > start_) return begin_trial(std::max(start_, workers_ / 2), rate);
  const bool workers_wait = computing < kComputingWorkers * working && computing < busy;
  if (!caller_waits || !workers_wait || workers_ >= most_) {
    if (choice_ == Choice::kAsked) return;
    if (workers_ >= most_) {
      choice_ = Choice::kMost;
    } else if (tried_ != workers_) {
      choice_ = caller_waits ? Choice::kComputing : Choice::kCaller;
    }
    return;
  }
  // As many as would keep the processors busy.
  const double times = std::clamp(working / std::max(computing, 1e-9), 2.0, kMostAtOnce);
  begin_trial(std::min(static_cast<std::size_t>(times * static_cast<double>(workers_)), most_), rate);
}

void WorkerTuner::begin_trial(std::size_t workers, double rate) noexcept {
  trial_ = Trial{workers_, rate};
  workers_ = workers;
  warming_ = true;
}

bool WorkerTuner::keeps(const Trial& trial, double rate) noexcept {
  tried_ = workers_;
  gain_ = rate / trial.rate;
  if (workers_ < trial.before) {
    choice_ = gain_ < kNoLoss ? Choice::kNoGain : Choice::kComputing;
    return choice_ == Choice::kComputing;
  }
  choice_ = gain_ < kGain ? Choice::kNoGain : Choice::kGain;
  return choice_ == Choice::kGain;
}

}  // namespace penstock::data
