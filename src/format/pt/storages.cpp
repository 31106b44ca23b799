// Decides which tensors share a storage in the file. Tensors are sorted by their addresses and grouped where their
// memory overlaps, or lies close together in one buffer. Each group becomes one storage.

#include "format/pt/storages.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/view.h"
#include "device/buffer_access.h"

namespace penstock::format {

namespace {

/// A tensor's bytes in memory. Addresses are compared, not followed: the memory may be a device's.
struct Span {
  const void* owner = nullptr;
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  const std::byte* buffer = nullptr;  ///< where the tensor's Buffer begins
  std::size_t tensor = 0;
};

/// Tensors of one storage while it grows.
struct Cluster {
  const void* owner = nullptr;
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  const std::byte* buffer = nullptr;
  std::vector<std::size_t> tensors;

  bool takes(const Span& span) const noexcept {
    if (span.owner != owner) return false;
    const std::less<> before;
    if (before(span.begin, end)) return true;
    // Not overlapping, but parts of one storage that loading would have kept together: if the gap costs little.
    return span.buffer == buffer && span.begin - end <= end - begin;
  }
};

Span span_of(const Tensor& tensor, std::size_t position) {
  // Fits: the tensor lies in memory.
  const std::size_t bytes = *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize());
  return {tensor.buffer().owner().get(), tensor.data(), tensor.data() + bytes, tensor.buffer().data(), position};
}

std::vector<Cluster> cluster(std::span<const Tensor> tensors) {
  std::vector<Span> spans;
  std::vector<Cluster> out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Span span = span_of(tensors[i], i);
    if (span.begin == span.end) {
      out.push_back({span.owner, span.begin, span.end, span.buffer, {i}});
    } else {
      spans.push_back(span);
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    const std::less<> before;
    if (a.owner != b.owner) return before(a.owner, b.owner);
    return a.begin != b.begin ? before(a.begin, b.begin) : a.tensor < b.tensor;
  });
  const std::size_t empty = out.size();
  for (const Span& span : spans) {
    if (out.size() == empty || !out.back().takes(span)) {
      out.push_back({span.owner, span.begin, span.end, span.buffer, {span.tensor}});
      continue;
    }
    Cluster& last = out.back();
    if (std::less<>()(last.end, span.end)) last.end = span.end;
    last.tensors.push_back(span.tensor);
  }
  return out;
}

void place(std::span<const Tensor> tensors, const std::byte* begin, std::span<const std::size_t> members,
           StoragePlan& plan) {
  const Tensor& first = tensors[members.front()];
  std::ptrdiff_t size = 0;
  for (const std::size_t member : members) size = std::max(size, span_of(tensors[member], member).end - begin);
  // The span may be wider than any one tensor's Buffer; its memory is alive as long as their common owner.
  Buffer memory = BufferAccess::make(first.buffer().owner(), const_cast<std::byte*>(begin),
                                     static_cast<std::size_t>(size), first.device(), true);
  PlannedStorage storage{.bytes = Tensor(std::move(memory), DType::uint8, Shape{size}),
                         .dtype = first.dtype(),
                         .nbytes = static_cast<std::uint64_t>(size)};
  for (const std::size_t member : members) {
    storage.mixed |= tensors[member].dtype() != storage.dtype;
    const std::ptrdiff_t distance = tensors[member].data() - begin;
    const auto itemsize = static_cast<std::ptrdiff_t>(tensors[member].dtype().itemsize());
    plan.tensors[member] = {plan.storages.size(), itemsize == 0 ? 0 : distance / itemsize};
  }
  plan.storages.push_back(std::move(storage));
}

bool is_aligned(const Tensor& tensor, const std::byte* begin) {
  const auto itemsize = static_cast<std::ptrdiff_t>(tensor.dtype().itemsize());
  return itemsize == 0 || (tensor.data() - begin) % itemsize == 0;
}

}  // namespace

void StoragePlan::add(std::span<const TensorEntry> entries, std::span<const std::uint64_t> storage_bytes) {
  const std::size_t first = storages.size();
  std::vector<bool> used(storage_bytes.size());
  for (std::size_t i = 0; i < storage_bytes.size(); ++i) {
    storages.push_back({.dtype = DType::uint8, .nbytes = storage_bytes[i], .number = i});
  }
  for (const TensorEntry& entry : entries) {
    PlannedStorage& storage = storages[first + entry.storage];
    if (!used[entry.storage]) storage.dtype = entry.dtype;
    used[entry.storage] = true;
    storage.mixed |= entry.dtype != storage.dtype;
    const std::size_t itemsize = entry.dtype.itemsize();
    const std::uint64_t offset = itemsize == 0 ? 0 : entry.byte_offset / itemsize;
    tensors.push_back({first + entry.storage, static_cast<std::int64_t>(offset)});
  }
}

StoragePlan plan_storages(std::span<const Tensor> tensors) {
  StoragePlan plan;
  plan.tensors.resize(tensors.size());
  for (Cluster& group : cluster(tensors)) {
    const auto apart = std::stable_partition(group.tensors.begin(), group.tensors.end(),
                                             [&](std::size_t i) { return is_aligned(tensors[i], group.begin); });
    place(tensors, group.begin, {group.tensors.begin(), apart}, plan);
    for (auto it = apart; it != group.tensors.end(); ++it) place(tensors, tensors[*it].data(), {&*it, 1}, plan);
  }
  return plan;
}

}  // namespace penstock::format
