#include <array>

#include "core/format.h"
#include "ops/operands.h"
#include "ops/promotion.h"
#include "ops/reduction.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

using ops::Extreme;
using ops::Reduction;

constexpr std::span<const std::int64_t> kAll;

/// The type that sums are formed in.
DType sum_type(const DType& dtype) {
  return dtype.is_floating() || dtype.is_complex() ? ops::compute_type(dtype) : DType::int64;
}

Tensor sum_of(const Tensor& tensor, std::span<const std::int64_t> dims, bool keepdim) {
  ops::require_numeric(tensor.dtype(), "sum");
  ops::require_real_on_device("sum", tensor.dtype(), tensor.device());
  const DType type = sum_type(tensor.dtype());
  const Tensor sums = ops::sum_as(ops::make_reduction(tensor, dims, keepdim, "sum"), type);
  return type == DType::int64 ? sums : sums.to(tensor.dtype());
}

Tensor mean_of(const Tensor& tensor, std::span<const std::int64_t> dims, bool keepdim) {
  if (!tensor.dtype().is_floating() && !tensor.dtype().is_complex()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("mean of {}: floats or complex numbers were expected; convert with "
                             "to(\"float32\")",
                             tensor.dtype().name()));
  }
  ops::require_real_on_device("mean", tensor.dtype(), tensor.device());
  const Reduction reduction = ops::make_reduction(tensor, dims, keepdim, "mean");
  const Tensor sums = ops::sum_as(reduction, sum_type(tensor.dtype()));
  return (sums / static_cast<double>(reduction.count)).to(tensor.dtype());
}

ops::ExtremeResults extremes_of(const Tensor& tensor, std::span<const std::int64_t> dims, bool keepdim, Extreme extreme,
                                const char* name) {
  ops::require_numeric(tensor.dtype(), name);
  if (tensor.dtype().is_complex()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("{} of {}: complex numbers have no order", name, tensor.dtype().name()));
  }
  const Reduction reduction = ops::make_reduction(tensor, dims, keepdim, name);
  if (reduction.count == 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("{} of no elements (shape {}): one or more were expected",
                                                          name, tensor.shape().to_string()));
  }
  return ops::find_extremes(reduction, extreme);
}

Extremum extremum_of(const Tensor& tensor, std::int64_t dim, bool keepdim, Extreme extreme, const char* name) {
  const std::array<std::int64_t, 1> dims = {dim};
  ops::ExtremeResults found = extremes_of(tensor, dims, keepdim, extreme, name);
  return {std::move(found.values), std::move(found.indices)};
}

}  // namespace

Tensor sum(const Tensor& tensor) { return sum_of(tensor, kAll, false); }
Tensor sum(const Tensor& tensor, Integer dim, Flag keepdim) {
  const std::array<std::int64_t, 1> dims = {dim};
  return sum_of(tensor, dims, keepdim);
}
Tensor sum(const Tensor& tensor, std::span<const std::int64_t> dims, Flag keepdim) {
  return sum_of(tensor, dims, keepdim);
}

Tensor mean(const Tensor& tensor) { return mean_of(tensor, kAll, false); }
Tensor mean(const Tensor& tensor, Integer dim, Flag keepdim) {
  const std::array<std::int64_t, 1> dims = {dim};
  return mean_of(tensor, dims, keepdim);
}
Tensor mean(const Tensor& tensor, std::span<const std::int64_t> dims, Flag keepdim) {
  return mean_of(tensor, dims, keepdim);
}

Tensor max(const Tensor& tensor) { return extremes_of(tensor, kAll, false, Extreme::kMax, "max").values; }
Tensor min(const Tensor& tensor) { return extremes_of(tensor, kAll, false, Extreme::kMin, "min").values; }
Extremum max(const Tensor& tensor, Integer dim, Flag keepdim) {
  return extremum_of(tensor, dim, keepdim, Extreme::kMax, "max");
}
Extremum min(const Tensor& tensor, Integer dim, Flag keepdim) {
  return extremum_of(tensor, dim, keepdim, Extreme::kMin, "min");
}

Tensor argmax(const Tensor& tensor) { return extremes_of(tensor, kAll, false, Extreme::kMax, "argmax").indices; }
Tensor argmax(const Tensor& tensor, Integer dim, Flag keepdim) {
  return extremum_of(tensor, dim, keepdim, Extreme::kMax, "argmax").indices;
}

}  // namespace penstock
