#pragma once

// What adds names about whole datasets to the module, behind bind_datasets and bind_samplers.

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace penstock::python {

void bind_documents(nb::module_& module);
void bind_lengths(nb::module_& module);
void bind_mix(nb::module_& module);
void bind_pairs(nb::module_& module);
void bind_labels(nb::module_& module);
void bind_shards(nb::module_& module);
void bind_streams(nb::module_& module);

}  // namespace penstock::python
