#include "data/collate/batch_plan.h"

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

std::uint64_t bytes_of(const DType& dtype, const Shape& shape) {
  std::uint64_t size = dtype.itemsize();
  for (const std::int64_t dim : shape) {
    const auto product = core::try_mul(size, static_cast<std::uint64_t>(dim));
    if (!product) throw_too_large(shape, dtype);
    size = *product;
  }
  return size;
}

}  // namespace

Strides slot_strides(SlotOrder order, const TensorLayout& tensor) {
  if (order == SlotOrder::kRows) return tensor.shape.contiguous_strides();
  if (order == SlotOrder::kChannelsLast) return channels_last_strides(tensor.shape);
  return keeps_gaps(tensor) ? tensor.strides : dense_strides(tensor.shape, tensor.strides);
}

bool keeps_gaps(const TensorLayout& tensor) { return !tensor.dense && tensor.extent() / 2 <= tensor.nbytes; }

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
  return add_bytes(dtype, shape, bytes_of(dtype, shape));
}

std::uint32_t BatchPlan::add_bytes(const DType& dtype, const Shape& shape, std::uint64_t size) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - kAlignment;
  if (size > kMost - bytes) throw_too_large(shape, dtype);
  const std::uint64_t offset = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  if (size > kMost - offset) throw_too_large(shape, dtype);
  outputs.push_back({dtype, shape, offset, shape.contiguous_strides()});
  bytes = offset + size;
  return static_cast<std::uint32_t>(outputs.size() - 1);
}

std::uint32_t BatchPlan::add(const TensorLayout& tensor, SlotOrder order) {
  const bool with_gaps = order == SlotOrder::kAsStored && keeps_gaps(tensor);
  const std::uint32_t output =
      with_gaps ? add_bytes(tensor.dtype, tensor.shape, tensor.extent()) : add(tensor.dtype, tensor.shape);
  outputs[output].requires_grad = tensor.requires_grad;
  if (order != SlotOrder::kRows) outputs[output].strides = slot_strides(order, tensor);
  return output;
}

}  // namespace penstock::data
