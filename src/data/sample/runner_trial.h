#pragma once

// What workers="auto" finds out: whether the program's functions are called in the loader's threads or by a Runner. A
// few batches are made in each way, the threads' first, and the way whose samples took less time stays. Batches are the
// same in both, so that nothing but time depends on it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace penstock::data {

enum class CallWay : std::uint8_t { kHere, kElsewhere };

/// Any thread may use it.
class RunnerTrial {
 public:
  /// Who knows how long a batch took: the thread that makes it, or who calls its functions later.
  enum class Clock : std::uint8_t { kBatches, kCallers };

  /// `workers`: how many batches are made at a time. `is_ready`: whether the runner's first call would wait for nothing
  /// but its own start; asked until it says so. An error of it is a refusal.
  RunnerTrial(std::size_t workers, Clock clock, std::function<bool()> is_ready);

  Clock clock() const noexcept { return clock_; }
  /// Where the functions of a batch that begins now are called.
  CallWay way();
  /// A batch was made in that way. The first ones of each way are not counted: batches of the other way run beside
  /// them, and processes start.
  void note(CallWay way, double seconds, std::size_t samples);
  /// The runner cannot call the functions: they are called here for good.
  void refuse(std::string why);
  bool is_decided() const;
  /// Whether functions are called here now, and for good: the runner is not needed any more.
  bool calls_here() const;
  bool lets_go() const { return is_decided() && calls_here(); }
  /// A sentence for people: where functions are called, and why.
  std::string because() const;

  /// Whether the runner's seconds a sample are worth its processes.
  static bool runner_is_faster(std::span<const double> here, std::span<const double> runner);

 private:
  const std::size_t workers_;
  const Clock clock_;
  const std::function<bool()> is_ready_;
  mutable std::mutex mutex_;  ///< guards what follows
  CallWay way_ = CallWay::kHere;
  bool is_settled_ = false;
  std::size_t passed_here_ = 0;
  std::size_t passed_runner_ = 0;
  std::vector<double> here_;  ///< seconds a sample of the batches that count
  std::vector<double> runner_;
  std::string refused_;
};

}  // namespace penstock::data
