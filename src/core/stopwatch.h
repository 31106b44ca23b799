#pragma once

// Seconds of reports and figures.

#include <chrono>
#include <utility>

namespace penstock::core {

/// Measures wall time from its construction.
class Stopwatch {
 public:
  /// Seconds since the last lap, or since construction.
  double lap() noexcept {
    const auto now = Clock::now();
    return seconds(now - std::exchange(lap_, now));
  }
  /// Seconds since construction.
  double total() const noexcept { return seconds(Clock::now() - start_); }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::duration span) noexcept { return std::chrono::duration<double>(span).count(); }

  Clock::time_point start_ = Clock::now();
  Clock::time_point lap_ = start_;
};

}  // namespace penstock::core
