// Kernels of complex numbers: a module of their own, which a driver compiles for those who use them.

#include "ops/kernels/arithmetic.h"
#include "ops/kernels/products.h"
#include "ops/kernels/sums.h"

namespace penstock::ops {

PENSTOCK_KERNEL(penstock_complex_binary, BinaryKernel) {
  if (p.compute == Code::kComplex128) return compute_binary<Complex<double>>(p, i);
  return compute_binary<Complex<float>>(p, i);
}

PENSTOCK_KERNEL(penstock_complex_unary, UnaryKernel) {
  if (p.compute == Code::kComplex128) return compute_unary<Complex<double>>(p, i);
  return compute_unary<Complex<float>>(p, i);
}

PENSTOCK_KERNEL(penstock_complex_sum_lanes, ReduceKernel) {
  if (p.type == Code::kComplex128) return sum_lane<Complex<double>>(p, i);
  return sum_lane<Complex<float>>(p, i);
}

PENSTOCK_KERNEL(penstock_complex_join_sums, JoinKernel) {
  if (p.type == Code::kComplex128) return join_sums<Complex<double>>(p, i);
  return join_sums<Complex<float>>(p, i);
}

PENSTOCK_KERNEL(penstock_complex_matmul, MatmulKernel) {
  if (p.type == Code::kComplex128) return multiply_square<Complex<double>>(p, i);
  return multiply_square<Complex<float>>(p, i);
}

}  // namespace penstock::ops
