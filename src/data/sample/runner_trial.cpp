// Medians are compared, because a batch may wait for a file, or for a process that starts. Threads stay where the
// difference is small: they take no memory of their own.

#include "data/sample/runner_trial.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// Batches of each way that count, at least.
constexpr std::size_t kCounted = 4;
/// What the runner's time must be below, as a part of the threads'.
constexpr double kWorthIt = 0.9;

double median(std::span<const double> given) {
  std::vector<double> values(given.begin(), given.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

RunnerTrial::RunnerTrial(std::size_t workers, Clock clock, std::function<bool()> is_ready)
    : workers_(std::max<std::size_t>(workers, 1)), clock_(clock), is_ready_(std::move(is_ready)) {}

bool RunnerTrial::runner_is_faster(std::span<const double> here, std::span<const double> runner) {
  if (here.empty() || runner.empty()) return false;
  return median(runner) < kWorthIt * median(here);
}

CallWay RunnerTrial::way() {
  const std::size_t counted = std::max(kCounted, workers_);
  {
    const std::scoped_lock lock(mutex_);
    if (is_settled_ || way_ == CallWay::kElsewhere || here_.size() < counted) return way_;
  }
  try {
    if (!is_ready_()) return CallWay::kHere;  // which may run code of Python, so that no lock is held
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) refuse(error.what());
    return CallWay::kHere;
  }
  const std::scoped_lock lock(mutex_);
  if (!is_settled_) way_ = CallWay::kElsewhere;
  return way_;
}

void RunnerTrial::note(CallWay way, double seconds, std::size_t samples) {
  const std::scoped_lock lock(mutex_);
  if (is_settled_ || samples == 0) return;
  const bool is_here = way == CallWay::kHere;
  // Of the runner's, each thread's first batch starts a process.
  const std::size_t most_passed = is_here ? workers_ : 2 * workers_;
  std::size_t& passed = is_here ? passed_here_ : passed_runner_;
  if (passed < most_passed) {
    ++passed;
    return;
  }
  (is_here ? here_ : runner_).push_back(seconds / static_cast<double>(samples));
  if (runner_.size() < std::max(kCounted, workers_)) return;
  is_settled_ = true;
  way_ = runner_is_faster(here_, runner_) ? CallWay::kElsewhere : CallWay::kHere;
}

void RunnerTrial::refuse(std::string why) {
  const std::scoped_lock lock(mutex_);
  if (is_settled_) return;
  is_settled_ = true;
  way_ = CallWay::kHere;
  refused_ = std::move(why);
}

bool RunnerTrial::is_decided() const {
  const std::scoped_lock lock(mutex_);
  return is_settled_;
}

bool RunnerTrial::calls_here() const {
  const std::scoped_lock lock(mutex_);
  return way_ == CallWay::kHere;
}

std::string RunnerTrial::because() const {
  const std::scoped_lock lock(mutex_);
  if (!is_settled_ && passed_here_ == 0) return "threads call the functions, of which none was to be called so far";
  if (!is_settled_) return "threads call the functions until both ways have been measured, which takes more batches";
  if (!refused_.empty()) return core::format("threads call the functions: {}", refused_);
  constexpr double kMicro = 1e6;
  return core::format(
      "{} call the functions: a sample took {:.1f} us in threads and {:.1f} us by worker processes "
      "(medians of {} and {} batches)",
      way_ == CallWay::kElsewhere ? "worker processes" : "threads", median(here_) * kMicro, median(runner_) * kMicro,
      here_.size(), runner_.size());
}

}  // namespace penstock::data
