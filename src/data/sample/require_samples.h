#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/dataset.h"

namespace penstock::data {

/// kInvalidArgument for a dataset that has functions of whole batches. `what` is "zip": what cannot be done with it.
void require_samples(const Dataset& dataset, std::string_view what);

/// kShapeMismatch where the datasets of `what`, "a zip", differ in size; `advice` ends the error.
void require_equal_sizes(std::span<const Dataset> datasets, std::string_view what, std::string_view advice);

/// The size of datasets of these sizes put together; kInvalidArgument where a dataset may not have so many.
std::int64_t joined_size(std::int64_t a, std::int64_t b);

/// The index of a sample, where negative ones count from the end. kIndexOutOfRange outside [-size, size).
std::int64_t from_start(std::int64_t index, std::int64_t size);

}  // namespace penstock::data
