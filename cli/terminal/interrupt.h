#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <stop_token>
#include <thread>

namespace penstock::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP ask the work to stop, which then removes what it has begun to write; a
/// second one ends the process at once. One that was ignored before stays so. Make it before other threads, which
/// inherit what is held back here.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  std::stop_token token() const noexcept { return stop_.get_token(); }
  /// work(); where a signal came meanwhile and the work threw, the process ends by that signal, as its parent expects.
  void during(const std::function<void()>& work);

 private:
  void wait(const std::stop_token& over);
  [[noreturn]] void end(int signal);

  sigset_t held_{};
  sigset_t before_{};
  std::atomic<int> signal_ = 0;
  std::stop_source stop_;
  std::jthread waiter_;
};

}  // namespace penstock::cli
