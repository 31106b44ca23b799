#include "interpreter/gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace penstock::python {
namespace {

template <class Take>
void take_or_stop(Take take) noexcept {
  try {
    take();
  } catch (const abi::__forced_unwind&) {
    stop_thread();
  }
}

}  // namespace

void stop_thread() noexcept {
  for (;;) pause();
}

ReleasedGil::~ReleasedGil() {
  take_or_stop([this] { PyEval_RestoreThread(state_); });
}

AcquiredGil::AcquiredGil() noexcept {
  take_or_stop([this] { state_ = PyGILState_Ensure(); });
}

bool interpreter_is_usable() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() != 0 && Py_IsFinalizing() == 0;
#else
  return Py_IsInitialized() != 0 && _Py_IsFinalizing() == 0;
#endif
}

}  // namespace penstock::python
