#pragma once

// Files of other libraries' file systems: a function of Python brings their bytes.

#include "penstock/source.h"

namespace penstock::python {

/// What penstock.remote makes, and `open` and `load` take in place of a path.
struct PySource {
  Source source;
};

}  // namespace penstock::python
