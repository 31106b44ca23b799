#pragma once

#include <optional>
#include <span>

#include "data/collate/batch_plan.h"
#include "penstock/buffer.h"
#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock::data {

/// The batch as the samples' structure. Its tensors are those of `made`, by the number of their output, and else views
/// of `block`.
Value batch_value(const Fetched& fetched, const BatchPlan& plan, const Buffer& block,
                  std::span<const std::optional<Tensor>> made = {});

}  // namespace penstock::data
