#include "cli/convert/float_cast.h"

#include <limits>

#include "penstock/ops.h"

namespace penstock::cli {
namespace {

/// Whether values of the one may be beyond the range of the other. Of the types of a byte, one has the range of
/// float32.
bool may_overflow(const DType& from, const DType& to) {
  return to.itemsize() <= from.itemsize() || from == DType::float8_e8m0fnu;
}

std::int64_t infinities(const Tensor& tensor) {
  const Tensor wide = tensor.dtype() == DType::float64 ? tensor : tensor.to(DType::float32);
  return sum(abs(wide) == std::numeric_limits<double>::infinity()).item<std::int64_t>();
}

}  // namespace

DType FloatCast::type_of(const DType& dtype) const { return changes(dtype) ? *dtype_ : dtype; }

Tensor FloatCast::operator()(const Tensor& tensor) {
  if (!changes(tensor.dtype())) return tensor;
  const Tensor out = tensor.to(*dtype_);
  if (may_overflow(tensor.dtype(), out.dtype())) overflows_ += infinities(out) - infinities(tensor);
  return out;
}

}  // namespace penstock::cli
