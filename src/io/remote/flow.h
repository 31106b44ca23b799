#pragma once

// How many large requests a server is given at once. A far store has to be asked for much at once, because each
// connection carries little. A small one, on a machine like this one, is slowed down by that: it serves a few at its
// full speed. Nobody says which it is, so the number is tried out while a load goes on: it grows while more come in a
// second, shrinks while no fewer do, and stays a while where a step down has cost something.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock::io::remote {

/// Not thread-safe.
class Flow {
 public:
  using Clock = std::chrono::steady_clock;
  /// Requests for so many bytes are large.
  static constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
  static constexpr std::size_t kLeast = 4;
  static constexpr std::size_t kFirst = 16;
  static constexpr std::chrono::milliseconds kWindow{250};

  explicit Flow(std::size_t most) noexcept;

  /// Large requests that may be on their way.
  std::size_t limit() const noexcept { return limit_; }
  /// To be called now and then. `bytes`: that have come in all until now; `is_full`: as many requests as may be are on
  /// their way, and others wait. Without that, the bytes say nothing about the number.
  void look(Clock::time_point now, std::uint64_t bytes, bool is_full) noexcept;

 private:
  void judge(double rate) noexcept;
  void step(bool up) noexcept;

  std::size_t most_;
  std::size_t limit_;
  bool is_up_ = true;      ///< the last step
  double before_ = 0;      ///< bytes a second before it; 0: not known
  unsigned rests_ = 0;     ///< windows until the next step
  Clock::time_point begun_{};
  std::uint64_t begun_bytes_ = 0;
  bool was_full_ = false;
};

}  // namespace penstock::io::remote
