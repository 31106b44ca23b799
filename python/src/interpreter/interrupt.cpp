#include "interpreter/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "interpreter/gil.h"

namespace penstock::python {
namespace {

struct Counter {
  std::mutex mutex;
  std::condition_variable none;
  std::size_t running = 0;
  std::atomic<bool> ending = false;
  const pid_t process = getpid();
};

Counter& counter() {
  // Never destroyed: work that nobody could wait for may end later still.
  static Counter& kept = *new Counter;
  return kept;
}

void wait_for_running() {
  Counter& c = counter();
  // Threads do not follow into a forked child, and what they held locked stays so.
  if (getpid() != c.process) return;
  c.ending = true;
  const ReleasedGil released;
  std::unique_lock lock(c.mutex);
  c.none.wait_for(lock, kExitPatience, [&c] { return c.running == 0; });
}

}  // namespace

bool signals_arrive_here() noexcept { return getpid() == gettid(); }

void check_signals() {
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

bool ctrl_c_came() noexcept {
  thread_local std::chrono::steady_clock::time_point looked{};
  const auto now = std::chrono::steady_clock::now();
  if (now - looked < kSignalPeriod) return false;
  const AcquiredGil acquired;
  if (PyOS_InterruptOccurred() == 0) {
    looked = now;
    return false;
  }
  PyErr_SetInterrupt();  // the question took it away
  return true;
}

void yield_at(std::size_t number) {
  if (number % 1024 != 0) return;
  { const ReleasedGil others; }
  if (signals_arrive_here()) check_signals();
}

Running::Running() {
  Counter& c = counter();
  if (getpid() != c.process) {
    counts_ = false;
    return;
  }
  const std::scoped_lock lock(c.mutex);
  ++c.running;
}

Running::~Running() {
  if (!counts_) return;
  Counter& c = counter();
  const std::scoped_lock lock(c.mutex);
  if (--c.running == 0) c.none.notify_all();
}

bool is_ending() noexcept { return counter().ending; }

void wait_for_running_at_exit() {
  counter();
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(wait_for_running));
}

}  // namespace penstock::python
