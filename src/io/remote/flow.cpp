#include "io/remote/flow.h"

#include <algorithm>

namespace penstock::io::remote {
namespace {

/// A step up has to give more than this; a step down may cost less than that.
constexpr double kBetter = 1.1;
constexpr double kWorse = 0.93;
constexpr unsigned kRest = 12;

}  // namespace

Flow::Flow(std::size_t most) noexcept : most_(std::max<std::size_t>(most, 1)), limit_(std::min(kFirst, most_)) {}

void Flow::look(Clock::time_point now, std::uint64_t bytes, bool is_full) noexcept {
  const bool goes_on = is_full && was_full_;
  was_full_ = is_full;
  if (goes_on && now - begun_ < kWindow) return;
  if (goes_on) {
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    judge(static_cast<double>(bytes - begun_bytes_) / seconds);
  }
  begun_ = now;
  begun_bytes_ = bytes;
}

void Flow::judge(double rate) noexcept {
  if (rests_ > 0) {
    // What was measured then says little about a later time.
    if (--rests_ == 0) before_ = 0;
    return;
  }
  const double before = before_;
  before_ = rate;
  if (before <= 0) return step(true);
  if (is_up_) return step(rate > before * kBetter);
  if (rate > before * kWorse) return step(false);
  step(true);
  rests_ = kRest;
}

void Flow::step(bool up) noexcept {
  const std::size_t by = std::max<std::size_t>(limit_ / 2, 1);
  const std::size_t least = std::min(kLeast, most_);
  is_up_ = up;
  limit_ = up ? std::min(limit_ + by, most_) : std::max(limit_ - std::max<std::size_t>(limit_ / 3, 1), least);
}

}  // namespace penstock::io::remote
