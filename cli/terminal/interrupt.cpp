#include "cli/terminal/interrupt.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <system_error>

#include "cli/terminal/terminal.h"

namespace penstock::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr int kShellsCode = 128;

}  // namespace

Interrupt::Interrupt() {
  ::sigemptyset(&held_);
  for (const int signal : kSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::sigaddset(&held_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  try {
    waiter_ = std::jthread([this](const std::stop_token& over) { wait(over); });
  } catch (const std::system_error&) {  // no thread is to be had: signals end the process, as without this
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

Interrupt::~Interrupt() {
  waiter_ = {};
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Interrupt::during(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    if (const int signal = signal_) end(signal);
    throw;
  }
}

void Interrupt::wait(const std::stop_token& over) {
  constexpr timespec kLook{0, 50'000'000};
  while (!over.stop_requested()) {
    const int signal = ::sigtimedwait(&held_, nullptr, &kLook);
    if (signal <= 0) continue;
    if (signal_ != 0) end(signal);
    signal_ = signal;
    stop_.request_stop();
  }
}

void Interrupt::end(int signal) {
  show_progress({});
  std::fflush(stdout);
  ::signal(signal, SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(kShellsCode + signal);
}

}  // namespace penstock::cli
