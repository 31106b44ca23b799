// Storages are laid out in the order of the file, each behind the last, so that a contiguous read of the file fills
// contiguous memory. Two things make gaps. Each storage is aligned for fast kernels. A large one begins as far behind a
// page as it does in the file, because direct reads need the same alignment in the file and in memory.

#include "archive/block_layout.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/checked.h"
#include "core/round.h"

namespace penstock::archive {
namespace {

constexpr std::uint64_t kMinPhased = std::uint64_t{1} << 20;

/// The first place at `end` or behind that suits the item.
std::uint64_t place_behind(std::uint64_t end, const BlockItem& item) {
  const std::optional<std::uint64_t> phase = item.as_stored ? phase_of(item.offset, item.bytes) : std::nullopt;
  const std::uint64_t unit = phase ? phase_unit() : kStorageAlignment;
  const std::uint64_t shift = phase.value_or(0);
  return end <= shift ? shift : core::round_up(end - shift, unit) + shift;
}

}  // namespace

std::uint64_t phase_unit() noexcept {
  static const std::uint64_t page = core::page_size();
  return page;
}

std::optional<std::uint64_t> phase_of(std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (bytes < kMinPhased || offset % kStorageAlignment != 0) return std::nullopt;
  return offset % phase_unit();
}

BlockLayout lay_out(std::span<const BlockItem> items, Blocks blocks) {
  const bool in_one = blocks == Blocks::kOne;
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) { return std::make_tuple(items[i].source, items[i].offset, i); };
  const auto before = [&](std::size_t a, std::size_t b) { return key(a) < key(b); };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);

  BlockLayout layout;
  layout.places.resize(items.size());
  std::optional<std::uint32_t> shared;
  for (const std::size_t i : order) {
    const std::uint64_t bytes = items[i].bytes;
    const bool alone = !in_one && bytes > kMaxGrouped;
    std::uint64_t begin = 0;
    if (!alone && shared) {
      begin = place_behind(layout.blocks[*shared], items[i]);
      if (!in_one && begin + bytes > kMaxBlock) shared.reset();
    }
    if (alone || !shared) {
      begin = place_behind(0, items[i]);
      layout.blocks.push_back(0);
      if (!alone) shared = static_cast<std::uint32_t>(layout.blocks.size() - 1);
    }
    const std::uint32_t block = alone ? static_cast<std::uint32_t>(layout.blocks.size() - 1) : *shared;
    layout.places[i] = {block, begin};
    layout.blocks[block] = core::checked_add(begin, bytes, "the size of what is loaded");
  }
  return layout;
}

}  // namespace penstock::archive
