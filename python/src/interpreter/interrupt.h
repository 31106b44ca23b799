#pragma once

// Long calls that answer Ctrl-C: the work runs on a thread of its own while the calling thread, without the GIL, looks
// for signals a few times a second.

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/stop_scope.h"
#include "device/current.h"
#include "interpreter/gil.h"
#include "interpreter/nanobind.h"

namespace penstock::python {

/// How often a waiting call looks for signals.
inline constexpr std::chrono::milliseconds kSignalPeriod{50};
/// How long an interrupted call waits for its work to notice the stop before it leaves it behind.
inline constexpr std::chrono::milliseconds kStopPatience{100};
/// How long the interpreter's end waits for what was left behind.
inline constexpr std::chrono::seconds kExitPatience{5};

/// Only the process's first thread gets Python's signals.
bool signals_arrive_here() noexcept;
/// Runs the handlers of signals that arrived; throws what they raise.
void check_signals();
/// Whether Ctrl-C came, whose handler is still to run: for a core::StopScope around work without the GIL that stays in
/// the calling thread. What it ends throws kCancelled; `check_signals` then runs the handler.
bool ctrl_c_came() noexcept;
/// In a long loop over Python objects, at item `number`: now and then other threads get the GIL, which C code does not
/// give up by itself, and signals are answered.
void yield_at(std::size_t number);

/// Work on a thread of its own, which may be left behind: its last sign of life.
class Running {
 public:
  Running();
  Running(Running&& other) noexcept : counter_(std::exchange(other.counter_, nullptr)) {}
  Running& operator=(Running&&) = delete;
  ~Running();

  /// Whether the interpreter has begun to end: a thread that asks while it is Running is waited for, and others must
  /// not begin anything.
  static bool is_ending() noexcept;
  /// Whether the calling thread, which is Running, may take the GIL. The first thread may as long as there is an
  /// interpreter.
  static bool may_call_python() noexcept;
  /// Has the interpreter wait, for kExitPatience at most, until no such work is left in its process: it uses what goes
  /// with the process.
  static void wait_for_all_at_exit();

 private:
  struct Counter;
  static Counter& counter();
  static void wait_for_all();

  Counter* counter_;  ///< null: moved from
};

/// Has `release` let go of objects of Python's, in any thread, with the GIL or (`without_gil`) as it is. The
/// interpreter's end waits for it, because what goes may run code of the program, or let go of the GIL itself, as
/// torch's tensors do. Behind that nothing is called: what is left goes with the process.
void let_go_with_gil(const std::function<void()>& release) noexcept;
void let_go_without_gil(const std::function<void()>& release) noexcept;

template <class Work>
struct Release {
  std::optional<Work>& held;
  ~Release() { held.reset(); }
};

/// Runs the task on a thread of its own, which may be left behind; where the system gives none here, so that no signal
/// is answered. The task, and what it holds, is gone before it stops counting as running.
template <class Result>
std::future<Result> run_behind(std::shared_ptr<std::packaged_task<Result()>> task) {
  std::future<Result> result = task->get_future();
  try {
    std::thread([running = Running(), task] { (*task)(); }).detach();
  } catch (const std::system_error&) {
    const ReleasedGil released;
    (*task)();
  }
  return result;
}

/// Whether the result came within so long, waited for without the GIL.
template <class Result>
bool came(const std::future<Result>& result, std::chrono::milliseconds patience) {
  const ReleasedGil released;
  return result.wait_for(patience) == std::future_status::ready;
}

/// work(stop_token) with the GIL released, answering signals if `long_enough`; what is current in the calling thread
/// (device, streams) is so for the work. An exception of a signal handler sets the token, which ends waits (StopScope),
/// and is thrown, at the latest kStopPatience after; the work then ends alone, so it must own all it uses.
template <class Work>
auto interruptible(bool long_enough, Work work) -> std::invoke_result_t<Work&, std::stop_token> {
  using Result = std::invoke_result_t<Work&, std::stop_token>;
  if (!long_enough || !signals_arrive_here()) {
    const ReleasedGil released;
    return work(std::stop_token{});
  }
  std::stop_source stop;
  std::future<Result> result = run_behind(std::make_shared<std::packaged_task<Result()>>(
      [held = std::optional<Work>(std::move(work)), token = stop.get_token(), current = device::Current()]() mutable {
        current.adopt();
        const core::StopScope scope(token);
        // What the work owns is gone before its result is there.
        const Release<Work> release{held};
        return (*held)(token);
      }));
  while (!came(result, kSignalPeriod)) {
    try {
      check_signals();
    } catch (...) {
      stop.request_stop();
      came(result, kStopPatience);
      throw;
    }
  }
  return result.get();
}

}  // namespace penstock::python
