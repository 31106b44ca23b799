#include "cli/convert/float_cast.h"

#include <limits>

#include "penstock/ops.h"

namespace penstock::cli {
namespace {

std::int64_t infinities(const Tensor& tensor) {
  const Tensor wide = tensor.dtype() == DType::float64 ? tensor : tensor.to(DType::float32);
  return sum(abs(wide) == std::numeric_limits<double>::infinity()).item<std::int64_t>();
}

}  // namespace

DType FloatCast::type_of(const DType& dtype) const { return changes(dtype) ? *dtype_ : dtype; }

Tensor FloatCast::operator()(const Tensor& tensor) {
  if (!changes(tensor.dtype())) return tensor;
  const Tensor out = tensor.to(*dtype_);
  if (out.dtype().itemsize() <= tensor.dtype().itemsize()) overflows_ += infinities(out) - infinities(tensor);
  return out;
}

}  // namespace penstock::cli
