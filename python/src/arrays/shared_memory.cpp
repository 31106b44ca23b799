#include "arrays/shared_memory.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/view.h"

namespace penstock::python {
namespace {

using Entry = std::pair<detail::ValueNode*, Tensor>;

struct Extent {
  std::byte* begin;
  std::byte* end;
  Tensor* tensor;
};

std::byte* end_of(const Tensor& tensor) {
  return tensor.data() + *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize());
}

std::vector<Extent> extents_of(std::vector<Entry>& tensors) {
  std::vector<Extent> out;
  for (auto& [node, tensor] : tensors) {
    if (tensor.nbytes() > 0 && tensor.device() == Device{}) out.push_back({tensor.data(), end_of(tensor), &tensor});
  }
  std::sort(out.begin(), out.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  return out;
}

bool share_already(const std::vector<Extent>& group) {
  return std::all_of(group.begin(), group.end(), [&](const Extent& extent) {
    return extent.tensor->buffer().shares_memory_with(group.front().tensor->buffer());
  });
}

void rebase(const std::vector<Extent>& group, std::byte* end) {
  if (share_already(group)) return;
  auto owners = std::make_shared<std::vector<Buffer>>();
  for (const Extent& extent : group) owners->push_back(extent.tensor->buffer());
  std::byte* begin = group.front().begin;
  const Buffer block = Buffer::wrap(begin, static_cast<std::size_t>(end - begin), owners, true);
  for (const Extent& extent : group) {
    Tensor& tensor = *extent.tensor;
    tensor =
        Tensor(block, tensor.dtype(), tensor.shape(), tensor.strides(), static_cast<std::size_t>(extent.begin - begin))
            .with_requires_grad(tensor.requires_grad());
  }
}

}  // namespace

void share_memory(std::vector<Entry>& tensors) {
  const std::vector<Extent> extents = extents_of(tensors);
  for (std::size_t first = 0; first < extents.size();) {
    std::vector<Extent> group{extents[first]};
    std::byte* end = extents[first].end;
    std::size_t next = first + 1;
    for (; next < extents.size() && extents[next].begin < end; ++next) {
      group.push_back(extents[next]);
      end = std::max(end, extents[next].end);
    }
    rebase(group, end);
    first = next;
  }
}

}  // namespace penstock::python
