#pragma once

#include <nanobind/nanobind.h>

#include "penstock/source.h"

namespace nb = nanobind;

namespace penstock::python {

/// What penstock.remote makes, and `open` and `load` take in place of a path.
struct PySource {
  Source source;
  nb::object made;  ///< what `__reduce__` gives
};

}  // namespace penstock::python
