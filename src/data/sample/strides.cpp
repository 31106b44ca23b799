// Each rule is torch's own, step by step, because results differ where sizes of 1, equal strides and repeated elements
// leave the order open: is_channels_last_strides_2d in c10 and at::infer_dense_strides.

#include "data/sample/strides.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace penstock::data {

namespace {

/// Below 0: dimension `a` lies inside of `b`; above: the other way; 0: open, as where elements are repeated.
int compared(const Shape& shape, const Strides& strides, std::size_t a, std::size_t b) noexcept {
  if (strides[a] == 0 || strides[b] == 0) return 0;
  if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
  return shape[a] > shape[b] ? 1 : 0;
}

/// The dimensions, innermost first. A sort by insertion, because `compared` is no order: 0 does not mean equal.
std::vector<std::size_t> from_inside(const Shape& shape, const Strides& strides) {
  std::vector<std::size_t> out;
  for (std::size_t d = shape.rank(); d-- > 0;) out.push_back(d);
  for (std::size_t i = 1; i < out.size(); ++i) {
    std::size_t moved = i;
    for (std::size_t before = i; before-- > 0;) {
      const int order = compared(shape, strides, out[before], out[moved]);
      if (order < 0) break;
      if (order == 0) continue;
      std::swap(out[before], out[moved]);
      moved = before;
    }
  }
  return out;
}

}  // namespace

bool fills_its_bytes(const Shape& shape, const Strides& strides) {
  std::vector<std::size_t> dims;  // of more than one element, innermost first
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1) dims.push_back(d);
  }
  std::sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::int64_t step = 1;
  for (const std::size_t d : dims) {
    if (strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

Strides dense_strides(const Shape& shape, const Strides& strides) {
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (is_empty || fills_its_bytes(shape, strides)) return strides;
  Strides out = strides;
  std::int64_t step = 1;
  for (const std::size_t d : from_inside(shape, strides)) {
    out[d] = step;
    step *= shape[d];
  }
  return out;
}

// Dimension 1 innermost, and no stride less than what lies inside of it. Where only one dimension has elements the
// answer is no.
bool is_channels_last(const Shape& shape, const Strides& strides) noexcept {
  const std::size_t rank = shape.rank();
  if ((rank != 4 && rank != 5) || strides[1] == 0) return false;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = i == 0 ? 1 : i == rank - 1 ? 0 : rank - i;
    if (shape[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<std::int64_t>(shape[d], 1);
  }
  return true;
}

// Dimension 1 lies innermost, behind it the others as they were.
Strides channels_last_strides(const Shape& shape) {
  Strides out = shape;
  std::int64_t step = shape[1];
  out[1] = 1;
  for (std::size_t d = shape.rank() - 1; d > 1; --d) {
    out[d] = step;
    step *= shape[d];
  }
  out[0] = step;
  return out;
}

}  // namespace penstock::data
