#include "data/collate/batch_plan.h"

#include <algorithm>
#include <limits>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock::data {

namespace {
[[noreturn]] void throw_too_large(const Shape& shape, const DType& dtype) {
  throw Error(ErrorCode::kOutOfMemory,
              core::format("a batch with {} of {} does not fit in memory; use a smaller batch_size", shape.to_string(),
                           dtype.name()));
}
}  // namespace

Strides slot_strides(SlotOrder order, const TensorLayout& tensor) {
  if (order == SlotOrder::kAsStored && tensor.dense) return tensor.strides;
  Strides out = tensor.shape.contiguous_strides();
  if (order != SlotOrder::kChannelsLast) return out;
  // Dimension 1 lies innermost, behind it the others as they were.
  const std::size_t rank = tensor.shape.rank();
  std::int64_t step = tensor.shape[1];
  out[1] = 1;
  for (std::size_t d = rank - 1; d > 1; --d) {
    out[d] = step;
    step *= tensor.shape[d];
  }
  out[0] = step;
  return out;
}

// As torch decides it in c10 (is_channels_last_strides_2d_s4 and _3d_s5): dimension 1 innermost, and no
// stride less than what lies inside of it. Where only one dimension has elements the answer is no.
bool is_channels_last(const TensorLayout& tensor) noexcept {
  const std::size_t rank = tensor.shape.rank();
  if ((rank != 4 && rank != 5) || tensor.strides[1] == 0) return false;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t d = i == 0 ? 1 : i == rank - 1 ? 0 : rank - i;
    if (tensor.shape[d] == 0 || tensor.strides[d] < least) return false;
    if (d == 0 && least == tensor.strides[1]) return false;
    least = tensor.strides[d] * std::max<std::int64_t>(tensor.shape[d], 1);
  }
  return true;
}

std::string Fetched::describe(std::size_t position) const {
  return core::format("sample {} ({})", indices[position], core::escaped(dataset.describe(indices[position])));
}

std::string Column::where() const { return leaf_.path.empty() ? std::string() : " at " + leaf_.path; }

void BatchPlan::clear() {
  outputs.clear();
  placements.clear();
  derived.clear();
  results.clear();
  by_sample = false;
  first_results.clear();
  bytes = payload = 0;
}

std::uint32_t BatchPlan::add(const DType& dtype, const Shape& shape) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - kAlignment;
  std::uint64_t size = dtype.itemsize();
  for (const std::int64_t dim : shape) {
    const auto product = core::try_mul(size, static_cast<std::uint64_t>(dim));
    if (!product) throw_too_large(shape, dtype);
    size = *product;
  }
  if (size > kMost - bytes) throw_too_large(shape, dtype);
  const std::uint64_t offset = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  if (size > kMost - offset) throw_too_large(shape, dtype);
  outputs.push_back({dtype, shape, offset, shape.contiguous_strides()});
  bytes = offset + size;
  return static_cast<std::uint32_t>(outputs.size() - 1);
}

std::uint32_t BatchPlan::add(const TensorLayout& tensor, SlotOrder order) {
  const std::uint32_t output = add(tensor.dtype, tensor.shape);
  outputs[output].requires_grad = tensor.requires_grad;
  if (order != SlotOrder::kRows) outputs[output].strides = slot_strides(order, tensor);
  return output;
}

}  // namespace penstock::data
