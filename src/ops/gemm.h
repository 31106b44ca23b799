#pragma once

#include "ops/gemm_kernels.h"
#include "penstock/dtype.h"

namespace penstock::ops {

/// How to multiply matrices of `type` in host memory, null for bool and types without arithmetic of their own. Floats
/// are multiplied by Eigen, compiled for what the processor has; integers wrap around.
Gemm gemm_for(DType::Code type) noexcept;

}  // namespace penstock::ops
