#pragma once

#include <nanobind/nanobind.h>

#include "penstock/dataset.h"

namespace nb = nanobind;

namespace penstock::python {

/// The methods of Dataset that transform its samples' tensors.
void bind_transforms(nb::class_<Dataset>& dataset);

}  // namespace penstock::python
