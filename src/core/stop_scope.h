#pragma once

// Ends waits by a request to stop (Ctrl-C, a loader that closes), where no signature carries a stop token.

#include <atomic>
#include <chrono>
#include <stop_token>

namespace penstock::core {

/// How often a wait looks whether it was asked to stop.
inline constexpr std::chrono::milliseconds kStopLook{50};

/// While it lives, what the calling thread waits for ends when a stop is requested. For waits far below whoever knows
/// of the stop, such as that for an answer of a server. Scopes nest, and a stop of any of them counts, because who is
/// called by somebody that was stopped has to end too.
class StopScope {
 public:
  /// The token or flag must outlive it.
  explicit StopScope(const std::stop_token& stop) noexcept;
  explicit StopScope(std::stop_token&& stop) = delete;
  explicit StopScope(const std::atomic<bool>* stopped) noexcept;
  /// `asked` is called by the thread that waits, to say whether it is to stop; null: never.
  explicit StopScope(bool (*asked)() noexcept) noexcept;
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// Whether a stop was requested of the calling thread.
  static bool stop_requested() noexcept;

 private:
  const StopScope* before_;
  const std::stop_token* token_ = nullptr;
  const std::atomic<bool>* flag_ = nullptr;
  bool (*asked_)() noexcept = nullptr;
};

}  // namespace penstock::core
