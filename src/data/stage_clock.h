#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock {
struct LoaderStats;
}

namespace penstock::data {

/// What a worker does for a batch, in the order of the fields of LoaderStats.
enum class Stage : std::uint8_t { kOpen, kRead, kDecode, kCollate, kCopy, kSend };

/// Splits a worker's time into stages: each lap gives the time since the one before to a stage, so that no time is left
/// out or counted twice. A lap costs one look at the clock. Not thread-safe.
class StageClock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kStages = 6;

  /// Time before this belongs to no stage.
  void start() noexcept { lap_ = Clock::now(); }
  void lap(Stage stage) noexcept {
    const auto now = Clock::now();
    spent_[static_cast<std::size_t>(stage)] += now - lap_;
    lap_ = now;
  }
  /// Adds the seconds of all stages to `stats` and forgets them.
  void move_to(LoaderStats& stats) noexcept;

 private:
  Clock::time_point lap_;
  std::array<Clock::duration, kStages> spent_{};
};

}  // namespace penstock::data
