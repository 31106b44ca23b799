#pragma once

#include <string>

#include "simulator/cublas/product.h"
#include "simulator/cublas/types.h"

namespace penstock::simulator {

/// The arguments of cublasGemmStridedBatchedEx.
struct BlasCall {
  int op_a, op_b, m, n, k;
  const void* alpha;
  const void* a;
  int a_type, lda;
  long long stride_a;
  const void* b;
  int b_type, ldb;
  long long stride_b;
  const void* beta;
  void* c;
  int c_type, ldc;
  long long stride_c;
  int batch, compute, algorithm;
};

/// Whether cuBLAS's table of types has this combination.
bool are_types_supported(const BlasCall& call);
/// The rule that the call breaks, in words; empty where it breaks none. The matrices must lie inside of allocations.
std::string broken_rule(const BlasCall& call);
SimProduct as_product(const BlasCall& call);

}  // namespace penstock::simulator
