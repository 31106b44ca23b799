// Makes values of bytes in memory: swaps bytes, applies torch's conj and neg bits, and copies elements that are not
// aligned. Copies treat elements as rows of bytes, which need no alignment.

#include "archive/materialise.h"

#include <algorithm>

#include "core/format.h"
#include "core/text.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// Views may overlap in other ways than by stride 0. A file of a few bytes could ask for terabytes that way.
constexpr std::size_t kAlwaysAllowed = std::size_t{1} << 28;
constexpr std::size_t kMaxGrowth = 64;

void require_modest(const Tensor& compact) {
  if (compact.nbytes() <= kAlwaysAllowed || compact.nbytes() / kMaxGrowth <= compact.buffer().size()) return;
  throw Error(ErrorCode::kLimit,
              core::format("a view of overlapping elements would grow from {} to {} when it is copied",
                           core::format_bytes(compact.buffer().size()), core::format_bytes(compact.nbytes())));
}

}  // namespace

std::size_t natural_alignment(const DType& dtype) noexcept { return std::max<std::size_t>(dtype.swap_width(), 1); }

Shape once(const Shape& shape, const Strides& strides) {
  Shape out = shape;
  for (std::size_t d = 0; d < out.rank(); ++d) {
    if (strides[d] == 0) out[d] = 1;
  }
  return out;
}

Strides repeating(Strides of_copy, const Strides& of_view) {
  for (std::size_t d = 0; d < of_copy.rank(); ++d) {
    if (of_view[d] == 0) of_copy[d] = 0;
  }
  return of_copy;
}

Tensor as_bytes(const Tensor& tensor) {
  const auto width = static_cast<std::int64_t>(tensor.dtype().itemsize());
  Shape shape = tensor.shape();
  Strides strides = tensor.strides();
  for (std::size_t d = 0; d < strides.rank(); ++d) strides[d] *= width;
  shape.push_back(width);
  strides.push_back(1);
  return {tensor.buffer(), DType::uint8, shape, strides, tensor.byte_offset()};
}

void decode(const Encoding& encoding, const Tensor& tensor) {
  if (encoding.swapped) ops::swap_bytes({tensor.data(), tensor.nbytes()}, tensor.dtype().swap_width());
  if (encoding.negative) ops::negate(tensor);
  if (encoding.conjugate) ops::conjugate(tensor);
}

Tensor own_copy(const Tensor& view, const Encoding& encoding) {
  if (view.nbytes() == 0) return Tensor::empty(view.shape(), view.dtype());
  const Shape sizes = once(view.shape(), view.strides());
  const Tensor compact(view.buffer(), view.dtype(), sizes, view.strides(), view.byte_offset());
  require_modest(compact);
  const Tensor bytes = as_bytes(compact).clone();
  const Tensor copy(bytes.buffer(), view.dtype(), sizes);
  decode(encoding, copy);
  return {copy.buffer(), view.dtype(), view.shape(), repeating(copy.strides(), view.strides())};
}

}  // namespace penstock::archive
