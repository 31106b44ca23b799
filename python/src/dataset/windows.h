#pragma once

#include <nanobind/nanobind.h>

#include "penstock/dataset.h"

namespace nb = nanobind;

namespace penstock::python {

/// The methods of Dataset that take parts of one long array as samples.
void bind_windows(nb::class_<Dataset>& dataset);

}  // namespace penstock::python
