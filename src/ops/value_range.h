#pragma once

// For `fill` and arithmetic with numbers of the program.

#include "penstock/dtype.h"
#include "penstock/ops.h"

namespace penstock::ops {

/// kInvalidArgument when `dtype` is an integer type or bool that does not hold `value`, whose fraction is cut off.
void require_in_range(const Scalar& value, const DType& dtype);

}  // namespace penstock::ops
