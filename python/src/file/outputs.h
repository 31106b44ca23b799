#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace penstock::python {

void bind_outputs(nb::module_& module);

}  // namespace penstock::python
