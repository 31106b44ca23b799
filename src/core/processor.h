#pragma once

// What the processor offers beyond the baseline the library is built for, asked at run time. Loops are compiled twice
// from one source; both give the same values, because neither contracts a product and a sum.

#if defined(__x86_64__)
#define PENSTOCK_HAS_AVX2_LOOPS 1
#define PENSTOCK_TARGET_AVX2 __attribute__((target("avx2,f16c")))
#else
#define PENSTOCK_HAS_AVX2_LOOPS 0
#define PENSTOCK_TARGET_AVX2
#endif

namespace penstock::core {

/// Whether functions marked PENSTOCK_TARGET_AVX2 may be called. No processor has AVX2 without F16C, which Clang 14
/// cannot ask for.
inline bool has_avx2() noexcept {
#if PENSTOCK_HAS_AVX2_LOOPS
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

}  // namespace penstock::core
