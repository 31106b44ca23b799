#pragma once

// Where bytes come from in Python: a path, bytes in memory, or an open file. Everything here needs the GIL.

#include <string>

#include "interpreter/nanobind.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::python {

/// What penstock.remote makes, and `open` and `load` take in place of a path.
struct PySource {
  Source source;
  nb::object made;  ///< what `__reduce__` gives
};

/// The memory of any object with a buffer, which it keeps, read-only.
Buffer memory_of(nb::handle data);
/// The file that a function of the program gives for `name`: a Source, a path, bytes in memory, which are content in
/// any case, or an open file.
Source source_given(nb::handle given, const std::string& name);

}  // namespace penstock::python
