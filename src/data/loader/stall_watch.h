#pragma once

#include <chrono>
#include <thread>

#include "core/thread_time.h"

namespace penstock::data {

/// Tells how long the thread that looks was kept from running while it could have. Looks at the kernel's count rarely,
/// so that it may be asked after each batch. Not thread-safe.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBetweenLooks{10};

  /// True when it is time to look; `stalled` may be called at any time.
  bool due(Clock::time_point now) const noexcept { return now - looked_ >= kBetweenLooks; }
  /// Seconds that the calling thread stalled since the last look; 0 at its first.
  double stalled(Clock::time_point now) noexcept {
    looked_ = now;
    const std::thread::id thread = std::this_thread::get_id();
    const double total = core::thread_stalled_seconds().value_or(0);
    const double since = thread == thread_ ? total - total_ : 0;
    thread_ = thread;
    total_ = total;
    return since;
  }

 private:
  Clock::time_point looked_;
  std::thread::id thread_;
  double total_ = 0;
};

}  // namespace penstock::data
