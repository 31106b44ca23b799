#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "penstock/load.h"

namespace penstock::archive {

/// Where each of some storages goes when a whole archive is loaded.
struct BlockLayout {
  struct Place {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  std::vector<std::uint64_t> blocks;  ///< bytes of each
  std::vector<Place> places;          ///< of the storages, in the order in which they were given
};

inline constexpr std::uint64_t kStorageAlignment = 64;
/// Larger storages have a block of their own, so that it goes when they go; smaller ones are put together up to
/// kMaxBlock.
inline constexpr std::uint64_t kMaxGrouped = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxBlock = std::uint64_t{256} << 20;

inline constexpr std::uint64_t kPage = 4096;
/// How far behind a multiple of kPage bytes of a file that begin at `offset` should begin in memory: as far as in the
/// file, where they are many and that keeps them aligned. Reads past the page cache then go straight to their place.
std::optional<std::uint64_t> phase_of(std::uint64_t offset, std::uint64_t bytes) noexcept;

/// Lays out the storages `wanted` (positions in `storages`) in memory in the order of their bytes in the files, each
/// aligned to kStorageAlignment: a contiguous read then fills contiguous memory but for padding. Pure.
BlockLayout lay_out(std::span<const StorageEntry> storages, std::span<const std::size_t> wanted);

}  // namespace penstock::archive
