#pragma once

// Progress of what takes long, told to a function of Python or shown by a bar.

#include <cstdint>
#include <functional>

#include "interpreter/nanobind.h"

namespace penstock::python {

/// work() with its progress told by penstock._load.progress, which calls it on a thread of its own, where loads and
/// saves of C++ tell how far they are. Without `progress` (None) it is called here. `verb` and `path` are what a bar
/// says.
nb::object with_progress(nb::handle progress, const char* verb, nb::handle path, std::function<nb::object()> work);

/// How far work is that tells it itself: samples done, and all of them. Throws where it has to stop.
using TellSamples = std::function<void(std::int64_t done, std::int64_t total)>;
/// The same for work that counts samples. Without `progress` its function does nothing.
nb::object with_sample_progress(nb::handle progress, const char* verb, nb::handle path,
                                std::function<nb::object(const TellSamples& tell)> work);

}  // namespace penstock::python
