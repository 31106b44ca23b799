#pragma once

// The last step of a batch: what its samples left where it was comes into the batch's block.

#include <cstddef>

#include "data/collate/batch_plan.h"
#include "data/sample/work.h"

namespace penstock::data {

/// Completes a batch's block, in which fetching may have put payload already: all other payload comes straight from
/// where it lies into its slot, then padding behind it, and what is computed from headers. Uncontiguous payload goes
/// run by run. Throws SampleError; kCancelled as CallContext::check_cancelled. When it refuted a guess, what is in the
/// block means nothing.
void complete_block(const Fetched& fetched, const BatchPlan& plan, std::byte* block, const Work& work);

}  // namespace penstock::data
