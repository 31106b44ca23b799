#include "interrupt.h"

#include <unistd.h>

namespace penstock::python {

bool signals_arrive_here() noexcept { return getpid() == gettid(); }

void check_signals() {
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

}  // namespace penstock::python
