#pragma once

// One sample of a dataset, read now. It stands by itself because streams ask for it, which are below the batches that
// know how a sample is read.

#include <cstdint>

#include "data/sample/work.h"
#include "penstock/dataset.h"
#include "penstock/value.h"

namespace penstock::data {

/// Dataset::get, in an epoch. `keeps_order`: CallContext::keeps_order. batch/batch_maker.cpp defines it.
Value read_sample(const Dataset& dataset, std::int64_t index, bool keeps_order, const EpochSeed& seed = {});

}  // namespace penstock::data
