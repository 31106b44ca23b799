#include "interpreter/interrupt.h"

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "core/per_process.h"
#include "interpreter/gil.h"

namespace penstock::python {

struct Running::Counter {
  std::mutex mutex;
  std::condition_variable none;
  std::size_t running = 0;
  std::atomic<bool> ending = false;
};

/// Threads do not follow into a forked child, which counts its own. Never destroyed: work that nobody could wait for
/// may end later still.
Running::Counter& Running::counter() {
  static constinit core::PerProcess<Counter> one;
  return one.get();
}

void Running::wait_for_all() {
  Counter& c = counter();
  c.ending = true;
  const ReleasedGil released;
  std::unique_lock lock(c.mutex);
  c.none.wait_for(lock, kExitPatience, [&c] { return c.running == 0; });
}

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

Running::Running() : counter_(&counter()) {
  const std::scoped_lock lock(counter_->mutex);
  ++counter_->running;
}

Running::~Running() {
  if (counter_ != &counter()) return;  // moved from, or counted where this process was forked from
  const std::scoped_lock lock(counter_->mutex);
  if (--counter_->running == 0) counter_->none.notify_all();
}

bool Running::is_ending() noexcept { return counter().ending; }

bool Running::may_call_python() noexcept { return interpreter_is_usable() && (!is_ending() || signals_arrive_here()); }

void let_go_without_gil(const std::function<void()>& release) noexcept {
  const Running running;
  if (Running::may_call_python()) release();
}

void let_go_with_gil(const std::function<void()>& release) noexcept {
  let_go_without_gil([&] {
    const AcquiredGil acquired;
    try {
      release();
    } catch (const abi::__forced_unwind&) {
      stop_thread();  // it took longer than the interpreter's end waits
    }
  });
}

void Running::wait_for_all_at_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(wait_for_all));
}

}  // namespace penstock::python
