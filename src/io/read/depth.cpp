// By Little's law requests in flight = rate * time of each. At a full queue the rate therefore tells both: more
// requests either bring more bytes, or each of them takes longer. Windows in which the queue was not full are not
// counted, nor is the first round after a step, whose requests were asked for before it.

#include "io/read/depth.h"

#include <algorithm>

namespace penstock::io {
namespace {

/// Of what a step would bring if nothing but the wait limited, so much must come for the next step up.
constexpr double kWorth = 0.25;
/// Cuts may cost so much of the best rate, all together.
constexpr double kLoss = 0.04;
constexpr unsigned kRests = 12;
/// Fewer requests than this say little about a rate.
constexpr std::size_t kLeastRequests = 16;

}  // namespace

Depth::Depth(const Bounds& bounds) noexcept : bounds_(bounds) {
  bounds_.most = std::max<std::size_t>(bounds_.most, 1);
  bounds_.first = std::clamp<std::size_t>(bounds_.first, 1, bounds_.most);
  bounds_.least = std::clamp<std::size_t>(bounds_.least, 1, bounds_.first);
  limit_ = known_limit_ = bounds_.first;
}

void Depth::look(Clock::time_point now, std::uint64_t bytes, std::uint64_t requests, bool is_full) noexcept {
  const bool goes_on = is_full && was_full_;
  was_full_ = is_full;
  if (!goes_on) return begin_window(now, bytes, requests, true);
  const bool by_time = bounds_.rounds == 0;
  const std::size_t wanted = by_time ? 0 : settling_ ? limit_ : std::max(limit_ * bounds_.rounds, kLeastRequests);
  if (requests - begun_requests_ < wanted) return;
  if (settling_ && !by_time) return begin_window(now, bytes, requests, false);
  if (now - begun_ < bounds_.window) return;
  const std::size_t before = limit_;
  judge(static_cast<double>(bytes - begun_bytes_) / std::chrono::duration<double>(now - begun_).count());
  begin_window(now, bytes, requests, limit_ != before);
}

void Depth::begin_window(Clock::time_point now, std::uint64_t bytes, std::uint64_t requests, bool settling) noexcept {
  begun_ = now;
  begun_bytes_ = bytes;
  begun_requests_ = requests;
  settling_ = settling;
}

void Depth::judge(double rate) noexcept {
  if (rate <= 0) return;
  switch (phase_) {
    case Phase::kDoubling:
    case Phase::kAdding:
      return judge_more(rate);
    case Phase::kCutting:
      // The best rate stays what cuts are measured by, so that small losses do not add up.
      if (rate < known_rate_ * (1 - kLoss)) return rest();
      known_rate_ = std::max(known_rate_, rate);
      known_limit_ = limit_;
      return limit_ > bounds_.least ? less() : rest();
    case Phase::kResting:
      if (--rests_ > 0) return;
      // What was measured before says little about now.
      known_rate_ = rate;
      phase_ = Phase::kAdding;
      return limit_ < bounds_.most ? more() : less();
  }
}

void Depth::judge_more(double rate) noexcept {
  const double share = static_cast<double>(limit_) / static_cast<double>(known_limit_) - 1;
  const bool pays = known_rate_ == 0 || rate > known_rate_ * (1 + share * kWorth);
  if (rate > known_rate_) {
    known_rate_ = rate;
    known_limit_ = limit_;
  }
  if (!pays) {
    finding_ = Finding::kBandwidth;
    return less();
  }
  if (limit_ < bounds_.most) {
    finding_ = Finding::kNone;
    return more();
  }
  finding_ = Finding::kMost;
  rest();
}

void Depth::more() noexcept {
  const std::size_t by = phase_ == Phase::kDoubling ? limit_ : std::max<std::size_t>(bounds_.first / 2, 1);
  limit_ = std::min(limit_ + by, bounds_.most);
}

void Depth::less() noexcept {
  phase_ = Phase::kCutting;
  limit_ = std::max(known_limit_ - std::max<std::size_t>(known_limit_ / 4, 1), bounds_.least);
}

void Depth::rest() noexcept {
  phase_ = Phase::kResting;
  limit_ = known_limit_;
  rests_ = kRests;
}

}  // namespace penstock::io
