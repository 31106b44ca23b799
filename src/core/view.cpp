#include "core/view.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::core {
namespace {

bool is_empty(const Shape& shape) noexcept { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

/// A Python slice bound: negative counts from the end, then clipped to [0, size].
std::int64_t clip(std::int64_t bound, std::int64_t size) {
  if (bound < 0) bound += size;
  return std::clamp<std::int64_t>(bound, 0, size);
}

}  // namespace

std::size_t dim_of(std::int64_t dim, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (dim < -rank || dim >= rank) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("dimension {} of a tensor of shape {} does not exist", dim, shape.to_string()));
  }
  return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
}

std::int64_t select_view(Shape& shape, Strides& strides, std::int64_t given_dim, std::int64_t index) {
  const std::size_t dim = dim_of(given_dim, shape);
  const std::int64_t size = shape[dim];
  if (index < -size || index >= size) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("index {} is outside dimension {} of shape {}", index, dim, shape.to_string()));
  }
  if (index < 0) index += size;
  // An empty view keeps its offset: there is no element to move to.
  const std::int64_t moved = is_empty(shape) ? 0 : index * strides[dim];
  Shape sizes;
  Strides steps;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (d == dim) continue;
    sizes.push_back(shape[d]);
    steps.push_back(strides[d]);
  }
  shape = std::move(sizes);
  strides = std::move(steps);
  return moved;
}

std::int64_t slice_view(Shape& shape, Strides& strides, std::int64_t given_dim, std::int64_t start, std::int64_t stop,
                        std::int64_t step) {
  const std::size_t dim = dim_of(given_dim, shape);
  if (step < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("slice step {} was given where 1 or more was expected", step));
  }
  const std::int64_t size = shape[dim];
  start = clip(start, size);
  stop = clip(stop, size);
  const std::int64_t kept = stop > start ? (stop - start - 1) / step + 1 : 0;
  shape[dim] = kept;
  const std::int64_t moved = is_empty(shape) ? 0 : start * strides[dim];
  // The strides of an empty view say nothing and their product might not fit.
  if (kept > 1) strides[dim] = try_mul(strides[dim], step).value_or(strides[dim]);
  return moved;
}

std::optional<std::int64_t> view_extent(const Shape& shape, const Strides& strides) noexcept {
  if (is_empty(shape)) return 0;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const auto step = try_mul(shape[d] - 1, strides[d]);
    const auto sum = step ? try_add(last, *step) : std::nullopt;
    if (!sum) return std::nullopt;
    last = *sum;
  }
  return try_add(last, std::int64_t{1});
}

std::optional<std::uint64_t> view_span(const Shape& shape, const Strides& strides, std::size_t itemsize) noexcept {
  const auto elements = view_extent(shape, strides);
  if (!elements || !std::in_range<std::int64_t>(itemsize)) return std::nullopt;
  const auto bytes = try_mul(*elements, static_cast<std::int64_t>(itemsize));
  return bytes ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
}

namespace {

/// Whether nothing lies between elements whose dimensions are those that `dims` gives, the fastest first.
template <class Dims>
bool is_dense(const Shape& shape, const Strides& strides, Dims dims) noexcept {
  if (is_empty(shape)) return true;
  std::int64_t expected = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const std::size_t d = dims(i);
    if (shape[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

}  // namespace

bool is_c_order(const Shape& shape, const Strides& strides) noexcept {
  return is_dense(shape, strides, [last = shape.rank() - 1](std::size_t i) { return last - i; });
}

bool is_fortran_order(const Shape& shape, const Strides& strides) noexcept {
  return is_dense(shape, strides, [](std::size_t i) { return i; }) && !is_c_order(shape, strides);
}

}  // namespace penstock::core
