#include "penstock/mdspan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock::detail {
namespace {

void require_countable(const Tensor& tensor, std::uint64_t most) {
  const auto fits = [most](std::int64_t size) { return static_cast<std::uint64_t>(size) <= most; };
  const auto extent = core::view_extent(tensor.shape(), tensor.strides());
  if (extent && fits(*extent) && std::ranges::all_of(tensor.shape().dims(), fits)) return;
  throw Error(ErrorCode::kLimit,
              core::format("the indices of the mdspan end at {}, before those of a tensor of shape {} with strides {}; "
                           "take a larger type for them",
                           most, tensor.shape().to_string(), tensor.strides().to_string()));
}

/// Whether each dimension steps over all elements of those with smaller strides.
bool elements_are_apart(const Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride and size
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    if (tensor.shape()[i] > 1) dims.emplace_back(tensor.strides()[i], tensor.shape()[i]);
  }
  std::ranges::sort(dims);
  std::int64_t least = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < least) return false;
    least = stride * size;  // no more than a stride beyond what the view spans
  }
  return true;
}

}  // namespace

std::byte* elements_of_view(const Tensor& tensor, const ViewNeeds& needs) {
  if (tensor.dtype() != needs.dtype) throw_dtype_mismatch(tensor.dtype(), needs.dtype);
  if (tensor.rank() != needs.rank) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("an {} has {}, and the tensor has shape {}", needs.what,
                             core::counted(needs.rank, "dimension"), tensor.shape().to_string()));
  }
  if (tensor.device().type != DeviceType::kCpu) throw_not_host(tensor.device());
  if (needs.writable && tensor.read_only()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the memory may only be read (a mapped file, perhaps): take an {} of const elements, or "
                             "clone() the tensor",
                             needs.what));
  }
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % needs.alignment != 0) throw_not_aligned(tensor.dtype());
  return tensor.data();
}

void require_sizes(const Tensor& tensor, const std::int64_t* sizes, std::uint64_t most) {
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    if (sizes[i] < 0 || sizes[i] == tensor.shape()[i]) continue;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("the mdspan has size {} in dimension {}, and the tensor has shape {}", sizes[i], i,
                             tensor.shape().to_string()));
  }
  require_countable(tensor, most);
}

std::int64_t mdspan_stride(const Tensor& tensor, std::size_t dim) {
  if (dim == 0 && !elements_are_apart(tensor)) throw_other_layout(tensor);
  const bool leads_nowhere = tensor.shape()[dim] <= 1 || tensor.numel() == 0;
  return leads_nowhere ? 1 : tensor.strides()[dim];
}

void throw_other_layout(const Tensor& tensor) {
  throw Error(
      ErrorCode::kShapeMismatch,
      core::format("the layout of the mdspan has no strides {} of shape {}; take layout_stride, or contiguous()",
                   tensor.strides().to_string(), tensor.shape().to_string()));
}

}  // namespace penstock::detail
