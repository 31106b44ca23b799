#pragma once

#include <cstdint>
#include <string_view>

#include "penstock/dataset.h"

namespace penstock::data {

/// kInvalidArgument for a dataset that has functions of whole batches. `what` is "zip": what cannot be done with it.
void require_samples(const Dataset& dataset, std::string_view what);

/// The index of a sample, where negative ones count from the end. kIndexOutOfRange outside [-size, size).
std::int64_t from_start(std::int64_t index, std::int64_t size);

}  // namespace penstock::data
