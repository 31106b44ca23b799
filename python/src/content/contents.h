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
/// Whether it is a path where bytes may be one or content: no path has a zero byte, and every tensor file does.
bool is_path_not_content(nb::handle given);
/// Opens a path.
using OpenPath = Source (*)(const std::string& path);
/// The file that is given as a Source, as a path, which is opened, as bytes in memory, which are content in any case,
/// or as an open file; `name` is what errors call bytes, unless it is empty.
Source source_given(nb::handle given, OpenPath open, const std::string& name = {});

}  // namespace penstock::python
