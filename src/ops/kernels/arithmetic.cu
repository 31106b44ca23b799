// Kernels of elementwise operations on real numbers.

#include "ops/kernels/arithmetic.h"

namespace penstock::ops {

PENSTOCK_KERNEL(penstock_binary, BinaryKernel) {
  switch (p.compute) {
    case Code::kFloat32:
      return compute_binary<float>(p, i);
    case Code::kFloat64:
      return compute_binary<double>(p, i);
    case Code::kUInt64:
      return compute_binary<std::uint64_t>(p, i);
    default:
      return compute_binary<std::int64_t>(p, i);
  }
}

PENSTOCK_KERNEL(penstock_unary, UnaryKernel) {
  switch (p.compute) {
    case Code::kFloat32:
      return compute_unary<float>(p, i);
    case Code::kFloat64:
      return compute_unary<double>(p, i);
    case Code::kUInt64:
      return compute_unary<std::uint64_t>(p, i);
    default:
      return compute_unary<std::int64_t>(p, i);
  }
}

}  // namespace penstock::ops
