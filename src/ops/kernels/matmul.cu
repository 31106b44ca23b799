// The product of matrices of real numbers.

#include "ops/kernels/products.h"

namespace penstock::ops {

PENSTOCK_KERNEL(penstock_matmul, MatmulKernel) {
  switch (p.type) {
    case Code::kFloat32:
      return multiply_square<float>(p, i);
    case Code::kFloat64:
      return multiply_square<double>(p, i);
    default:
      return multiply_square<std::int64_t>(p, i);
  }
}

}  // namespace penstock::ops
