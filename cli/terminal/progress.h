#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock::cli {

/// "checking 34 %, 12 s left" on stderr where that is a terminal, a few times a second; gone with this object. Not
/// thread-safe.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total) : what_(std::move(what)), total_(total) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of the total; `more` is said behind it.
  void at(std::uint64_t done, const std::string& more = {});

 private:
  using Clock = std::chrono::steady_clock;

  std::string left(double share) const;

  std::string what_;
  std::uint64_t total_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point told_{};
};

}  // namespace penstock::cli
