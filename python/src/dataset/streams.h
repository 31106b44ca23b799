#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "penstock/mix.h"

namespace nb = nanobind;

namespace penstock::python {

/// The mixture of penstock.SampleStreams. kDTypeMismatch for what is none.
nb::object mixed_streams(const nb::list& streams, const std::vector<double>& weights, const MixOptions& options);

}  // namespace penstock::python
