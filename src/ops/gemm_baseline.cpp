#define Eigen penstock_eigen
#include "ops/gemm_eigen.h"

namespace penstock::ops {

Gemm baseline_gemm(GemmType type) noexcept { return eigen_gemm(type); }

}  // namespace penstock::ops
