#pragma once

#include <string_view>

#include "penstock/dataset.h"

namespace penstock::data {

/// kInvalidArgument for a dataset that has functions of whole batches. `what` is "zip": what cannot be done with it.
void require_samples(const Dataset& dataset, std::string_view what);

}  // namespace penstock::data
