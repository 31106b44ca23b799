#pragma once

#include "data/collate/batch_plan.h"
#include "penstock/buffer.h"
#include "penstock/value.h"

namespace penstock::data {

/// The batch as the samples' structure, its tensors views of `block`.
Value batch_value(const Located& located, const BatchPlan& plan, const Buffer& block);

}  // namespace penstock::data
