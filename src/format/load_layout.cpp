#include "format/load_layout.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace penstock::format {

Layout lay_out(std::span<const StorageEntry> storages, std::span<const std::size_t> wanted) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    return std::make_tuple(storages[wanted[i]].source, storages[wanted[i]].offset, wanted[i]);
  };
  const auto before = [&](std::size_t a, std::size_t b) { return key(a) < key(b); };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);

  Layout layout;
  layout.places.resize(wanted.size());
  std::optional<std::uint32_t> shared;
  for (const std::size_t i : order) {
    const std::uint64_t bytes = storages[wanted[i]].nbytes;
    const bool alone = bytes > kMaxGrouped;
    std::uint64_t begin = 0;
    if (!alone && shared) {
      begin = (layout.blocks[*shared] + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
      if (begin + bytes > kMaxBlock) shared.reset();
    }
    if (alone || !shared) {
      begin = 0;
      layout.blocks.push_back(0);
      if (!alone) shared = static_cast<std::uint32_t>(layout.blocks.size() - 1);
    }
    const std::uint32_t block = alone ? static_cast<std::uint32_t>(layout.blocks.size() - 1) : *shared;
    layout.places[i] = {block, begin};
    layout.blocks[block] = begin + bytes;
  }
  return layout;
}

}  // namespace penstock::format
