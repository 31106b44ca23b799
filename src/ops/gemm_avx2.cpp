// Compiled with -mavx2 -mfma on x86-64 (src/CMakeLists.txt); called only where the processor has both.

#include "ops/gemm_kernels.h"

#if defined(__AVX2__) && defined(__FMA__)

#define Eigen penstock_eigen_avx2
#include "ops/gemm_eigen.h"

namespace penstock::ops {

Gemm avx2_gemm(GemmType type) noexcept {
  const bool has_both = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has_both ? eigen_gemm(type) : nullptr;
}

}  // namespace penstock::ops

#else

namespace penstock::ops {

Gemm avx2_gemm(GemmType) noexcept { return nullptr; }

}  // namespace penstock::ops

#endif
