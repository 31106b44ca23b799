#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "data/trace/trace.h"

namespace penstock {
struct LoaderStats;
}

namespace penstock::data {

/// What a worker does for a batch, in the order of the fields of LoaderStats.
enum class Stage : std::uint8_t { kOpen, kRead, kDecode, kFunction, kCollate, kCopy, kSend };

/// Splits a worker's time into stages: each lap gives the time since the one before to a stage, so that no time is left
/// out or counted twice. A lap costs one look at the clock. Not thread-safe.
class StageClock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kStages = 7;

  /// Laps also go to this lane of a trace, unless it is null.
  void trace_to(Trace::Lane* lane) noexcept { lane_ = lane; }
  Trace::Lane* lane() const noexcept { return lane_; }
  /// Time before this belongs to no stage.
  void start() noexcept { lap_ = Clock::now(); }
  /// `sample`: its number in the dataset where the lap is of one alone.
  void lap(Stage stage, std::int64_t sample = -1) noexcept {
    const auto now = Clock::now();
    if (lane_ != nullptr) lane_->add(static_cast<Trace::What>(stage), lap_, now, sample);
    spent_[static_cast<std::size_t>(stage)] += now - lap_;
    lap_ = now;
  }
  /// Adds the seconds of all stages to `stats` and forgets them.
  void move_to(LoaderStats& stats) noexcept;

 private:
  Clock::time_point lap_;
  std::array<Clock::duration, kStages> spent_{};
  Trace::Lane* lane_ = nullptr;
};

}  // namespace penstock::data
