#pragma once

// How many requests are in flight at once where reads wait: the one place that decides it, for a load's threads
// (io/move/work_queue.h) and for the requests to a server (io/remote/reactor.h). Storage says nowhere how many it takes
// at its best: a far store carries little by each request, a small one is slowed down by many. So the number is tried
// out while bytes come in.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock::io {

/// The number grows while more bytes come in a second: twofold at first, later by a step. Where only the time of each
/// request grew (at a full queue that is the same as: no more bytes came), it is cut by a quarter, again and again,
/// until a cut costs bytes; then it rests there before it tries more. Tells no time by itself. Not thread-safe.
class Depth {
 public:
  using Clock = std::chrono::steady_clock;

  struct Bounds {
    std::size_t least = 4;
    std::size_t first = 8;
    std::size_t most = 8;
    /// A window lasts this long at least...
    std::chrono::nanoseconds window = std::chrono::milliseconds(4);
    /// ... and until each place in the queue has given so many requests. 0: bytes are counted as they come in, and not
    /// at the ends of requests, so that time alone counts.
    std::size_t rounds = 1;
  };
  explicit Depth(const Bounds& bounds) noexcept;

  /// Requests that may be in flight.
  std::size_t limit() const noexcept { return limit_; }
  /// To be called as bytes come in. `bytes` and `requests`: that came in all until now; `is_full`: as many requests as
  /// may be are in flight, and others wait. Without that the bytes say nothing about the number.
  void look(Clock::time_point now, std::uint64_t bytes, std::uint64_t requests, bool is_full) noexcept;

  /// What is known of the number.
  enum class Finding {
    kNone,       ///< it was still growing, or nothing was measured
    kBandwidth,  ///< more requests brought no more bytes
    kMost,       ///< as many as may be, and each step brought more bytes
  };
  Finding finding() const noexcept { return finding_; }
  /// The number that was found to be enough; without a finding, the largest that was tried.
  std::size_t enough() const noexcept { return finding_ == Finding::kNone ? limit_ : known_limit_; }

 private:
  enum class Phase { kDoubling, kAdding, kCutting, kResting };

  void begin_window(Clock::time_point now, std::uint64_t bytes, std::uint64_t requests, bool settling) noexcept;
  void judge(double rate) noexcept;
  void judge_more(double rate) noexcept;
  void more() noexcept;
  void less() noexcept;
  void rest() noexcept;

  Bounds bounds_;
  std::size_t limit_;
  Phase phase_ = Phase::kDoubling;
  Finding finding_ = Finding::kNone;
  std::size_t known_limit_;  ///< the best so far
  double known_rate_ = 0;    ///< bytes a second at that; 0: not measured
  unsigned rests_ = 0;       ///< windows until the next try

  bool was_full_ = false;
  bool settling_ = false;  ///< requests of before the last step still come in
  Clock::time_point begun_{};
  std::uint64_t begun_bytes_ = 0;
  std::uint64_t begun_requests_ = 0;
};

}  // namespace penstock::io
