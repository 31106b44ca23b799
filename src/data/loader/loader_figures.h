#pragma once

// What a loader tells of itself: where the time of its caller and of its workers went (LoaderStats, and the caller's
// lane of a trace), and what the WorkerTuner decides by.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>

#include "core/thread_time.h"
#include "data/loader/worker_tuner.h"
#include "data/trace/trace.h"
#include "penstock/loader.h"

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

/// The seconds that a worker spent on one batch.
struct Effort {
  double worked = 0;
  double computed = 0;
  double waited = 0;   ///< for memory
  double stalled = 0;  ///< since the last look
};

/// Not thread-safe.
class LoaderFigures {
 public:
  using Clock = std::chrono::steady_clock;

  /// `caller`: where the caller's time is traced, or null.
  explicit LoaderFigures(Trace::Lane* caller) : caller_(caller) {}

  /// A pass over batches begins, or ends.
  void begin(Clock::time_point now);
  void end(Clock::time_point now);
  /// Takes what a worker counted, which is forgotten there.
  void add(LoaderStats& counted, const Effort& effort);

  /// The caller comes for batch `next`. Returns when its wait begins: before the first batch of an order with the pass,
  /// because workers may have taken the processor from the caller.
  Clock::time_point came(Clock::time_point now, std::int64_t next, bool is_order);
  void waited(Clock::time_point begin, Clock::time_point end, std::int64_t next);
  /// The caller goes, without a batch or with one.
  void left(Clock::time_point now) noexcept { given_ = now; }
  void took(Clock::time_point now, std::size_t workers);

  Trace::Lane* lane() const noexcept { return caller_; }
  WorkerTuner::Figures for_tuner(Clock::time_point now) const;
  /// Without the number of processors, which is asked of files of the system.
  const LoaderStats& stats() const noexcept { return stats_; }

 private:
  Trace::Lane* const caller_;
  LoaderStats stats_;
  double worked_seconds_ = 0;    ///< of workers in batches, without their waits for memory
  double iterated_seconds_ = 0;  ///< of the passes before this one
  StallWatch watch_;             ///< of the caller
  double process_seconds_ = 0;   ///< of this process at the last look
  // Of the pass at hand.
  Clock::time_point started_;
  bool first_taken_ = false;
  std::optional<Clock::time_point> given_;  ///< when the caller went last
  Clock::time_point counted_;               ///< the time up to which worker_capacity counts
};

}  // namespace penstock::data
