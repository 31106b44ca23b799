#pragma once

// Python's global interpreter lock, given up and taken. Where the interpreter ends meanwhile, CPython before 3.14 ends
// threads that ask for the lock by unwinding them (pthread_exit), which no destructor of C++ may let pass: the process
// would be aborted in its last moments. Such threads stop here for good, as those of CPython 3.14 do.

#include <nanobind/nanobind.h>

namespace penstock::python {

/// Gives up the lock, which the calling thread has, for as long as this lives.
class ReleasedGil {
 public:
  ReleasedGil() noexcept : state_(PyEval_SaveThread()) {}
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the lock for as long as this lives, in any thread, whether it has it already or not. The interpreter must be
/// usable when that begins (`interpreter_is_usable`).
class AcquiredGil {
 public:
  AcquiredGil() noexcept;
  ~AcquiredGil() { PyGILState_Release(state_); }
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// For a thread that is being unwound by the interpreter's end: stops here for good.
[[noreturn]] void stop_thread() noexcept;

/// Whether there is an interpreter that objects may be handed back to, which is not about to end.
bool interpreter_is_usable() noexcept;

}  // namespace penstock::python
