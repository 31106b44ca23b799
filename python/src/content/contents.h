#pragma once

// Where bytes come from in Python: a path, bytes in memory, or an open file. Everything here needs the GIL.

#include <nanobind/nanobind.h>

#include <string>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace nb = nanobind;

namespace penstock::python {

/// The memory of any object with a buffer, which it keeps, read-only.
Buffer memory_of(nb::handle data);
/// The file that a function of the program gives for `name`: a Source, a path, bytes in memory, which are content in
/// any case, or an open file.
Source source_given(nb::handle given, const std::string& name);

}  // namespace penstock::python
