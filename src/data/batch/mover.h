#pragma once

// The last step of a batch: what its samples left where it was comes into the batch's block.

#include <cstddef>

#include "data/collate/batch_plan.h"
#include "data/sample/scratch.h"

namespace penstock::data {

/// Fills a batch's block: payload straight from where it lies into its slot, padding behind it, and what is computed
/// from headers. Uncontiguous payload goes run by run. Throws SampleError; kCancelled as Scratch::check_cancelled.
void fill_block(const Located& located, const BatchPlan& plan, std::byte* block, Scratch& scratch);

}  // namespace penstock::data
