// Kernels of complex numbers: a module of their own, which a driver compiles for those who use them.

#include "ops/kernels/arithmetic.h"
#include "ops/kernels/products.h"
#include "ops/kernels/sums.h"

namespace penstock::ops {

PENSTOCK_KERNEL(penstock_complex_binary, BinaryKernel) {
  if (p.compute == Code::kComplex128) return compute_binary<Complex<double>>(p, i);
  return compute_binary<Complex<float>>(p, i);
}

template <class Real>
PENSTOCK_DEVICE inline void compute_complex_unary(const UnaryKernel& p, std::uint64_t i) {
  const auto a = operand<Complex<Real>>(p.a, offsets(p.shape, p.a.steps, p.a.steps, i).first);
  std::byte* const to = p.to + i * width_of(p.result);
  switch (p.op) {
    case UnaryOp::kNegate:
      return store(to, p.result, Negate::apply(a));
    case UnaryOp::kAbs:
      if (p.result == Code::kFloat16) return store(to, Code::kFloat16, static_cast<float>(modulus_of(a)));
      return write(to, modulus_of(a));
    case UnaryOp::kExp:
      return store(to, p.result, exp_of(a));
    case UnaryOp::kLog:
      return store(to, p.result, log_of(a));
    case UnaryOp::kSqrt:
      return store(to, p.result, sqrt_of(a));
    default:
      return store(to, p.result, tanh_of(a));
  }
}

PENSTOCK_KERNEL(penstock_complex_unary, UnaryKernel) {
  if (p.compute == Code::kComplex128) return compute_complex_unary<double>(p, i);
  return compute_complex_unary<float>(p, i);
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
