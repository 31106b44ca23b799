#pragma once

// Where an archive's bytes come from in Python: a path, bytes in memory, or an open file. Everything here needs the
// GIL.

#include <nanobind/nanobind.h>

#include <string>

#include "archive.h"
#include "penstock/buffer.h"
#include "penstock/load.h"

namespace nb = nanobind;

namespace penstock::python {

/// The memory of any object with a buffer, which it keeps, read-only.
Buffer memory_of(nb::handle data);
/// The archive in an object with a buffer, whose bytes are shared; `name` stands for a path in errors.
PyArchive open_memory(nb::handle data, const std::string& name, const OpenOptions& options);
/// The archive that an argument of penstock.load means. `bytes` with a zero in them are content, since no path has one
/// and every tensor file does; other bytes are a path.
PyArchive open_given(nb::handle given, const OpenOptions& options);
/// The file that a function of the program gives for `name`: a Source, a path, bytes in memory, which are content in
/// any case, or an open file.
Source source_given(nb::handle given, const std::string& name);

}  // namespace penstock::python
