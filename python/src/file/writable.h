#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace penstock::python {

/// penstock.open(path, mode="r+"), once the argument `mode` was looked at.
nb::object open_to_write(nb::handle path, nb::handle mode, bool verify);

/// Adds penstock.WritableArchive to the module.
void bind_writable(nb::module_& module);

}  // namespace penstock::python
