// a += b is a + b, copied over a. The sum is made first and as a whole, so that a and b may share memory in any way.

#include <string_view>

#include "core/format.h"
#include "ops/kernels.h"
#include "ops/operands.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

/// bool, integer, float, complex: a value of one kind is a value of the next.
int kind_of(const DType& dtype) {
  if (dtype.is_complex()) return 3;
  if (dtype.is_floating()) return 2;
  return dtype.is_integer() ? 1 : 0;
}

Tensor& store(Tensor& a, const Tensor& result) {
  if (result.shape() != a.shape()) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("the result has shape {}, and is to be stored in a tensor of shape {}",
                             result.shape().to_string(), a.shape().to_string()));
  }
  if (kind_of(result.dtype()) > kind_of(a.dtype())) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("the result is {}, which a tensor of {} cannot hold; convert one of the two with to()",
                             result.dtype().name(), a.dtype().name()));
  }
  ops::copy(result.to(a.dtype()), a);
  return a;
}

void require_changeable(const Tensor& a, std::string_view operation) {
  ops::require_defined(operation, {"a", a});
  ops::require_not_read_only(a, operation);
  ops::require_own_elements(a);
}

}  // namespace

Tensor& operator+=(Tensor& a, const Operand& b) {
  require_changeable(a, "adding");
  return store(a, a + b);
}

Tensor& operator-=(Tensor& a, const Operand& b) {
  require_changeable(a, "subtracting");
  return store(a, a - b);
}

Tensor& operator*=(Tensor& a, const Operand& b) {
  require_changeable(a, "multiplying");
  return store(a, a * b);
}

Tensor& operator/=(Tensor& a, const Operand& b) {
  require_changeable(a, "dividing");
  return store(a, a / b);
}

}  // namespace penstock
