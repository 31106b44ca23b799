#include "data/batch/prediction.h"

#include <algorithm>
#include <functional>
#include <variant>

namespace penstock::data {

namespace {

/// Below this, moving costs less than reading in parts.
constexpr std::uint64_t kLeastSlot = 2048;

/// Whether the samples' own bytes, as they are, fill their slots one behind the other.
bool is_stack(const Fetched& fetched, const Placement& placement) noexcept {
  const TensorLayout& first = fetched.samples[0].layout->tensors[placement.tensor];
  return placement.slots.empty() && placement.takes_as_is(first) && first.nbytes == placement.pitch;
}

bool lies_in(const std::byte* data, std::span<const std::byte> block) noexcept {
  const std::less<> before;
  return !before(data, block.data()) && before(data, block.data() + block.size());
}

}  // namespace

void BatchPrediction::note(const Fetched& fetched, const BatchPlan& plan) {
  *this = {};
  for (const Placement& placement : plan.placements) {
    if (placement.pitch < std::max(kLeastSlot, slot_ + 1) || !is_stack(fetched, placement)) continue;
    // Only what was read, or made, in memory of our own could as well have been put into its slot.
    if (!std::holds_alternative<InMemory>(fetched.payload(0, placement.tensor).place)) continue;
    samples_ = fetched.size();
    bytes_ = plan.bytes;
    offset_ = placement.offset;
    slot_ = placement.pitch;
    tensor_ = placement.tensor;
  }
}

ExpectedSlots BatchPrediction::expected(const void* dataset, const Buffer& block) const noexcept {
  return {.dataset = dataset, .tensor = tensor_, .bytes = slot_, .first = block.data() + offset_, .block = &block};
}

bool fits(const Fetched& fetched, const BatchPlan& plan, std::span<const std::byte> block) noexcept {
  if (block.size() != plan.bytes) return false;
  if (!fetched.columns.empty()) return true;  // nothing was read into it
  for (const Placement& placement : plan.placements) {
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      if (!placement.has(i)) continue;
      const auto* const memory = std::get_if<InMemory>(&fetched.samples[i].payloads[placement.tensor].place);
      if (memory == nullptr || !lies_in(memory->data, block)) continue;
      const TensorLayout& tensor = fetched.samples[i].layout->tensors[placement.tensor];
      if (!placement.takes_as_is(tensor) || memory->data != block.data() + placement.slot(i)) return false;
    }
  }
  return true;
}

}  // namespace penstock::data
