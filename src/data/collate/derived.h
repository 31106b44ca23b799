#pragma once

// Outputs of a batch that no payload is moved for: scalars, lengths and masks, which collation computes from headers.

#include <cstddef>

#include "data/collate/batch_plan.h"

namespace penstock::data {

/// Writes all of the plan's derived outputs into their places in the block.
void fill_derived(const Fetched& fetched, const BatchPlan& plan, std::byte* block);

}  // namespace penstock::data
