#pragma once

// Where tensors that are loaded together lie in memory, so that neighbours in a file are neighbours there and few
// blocks are allocated.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace penstock::archive {

/// Bytes of a file that are to lie in a block.
struct BlockItem {
  std::uint32_t source = 0;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;   ///< in memory
  bool as_stored = true;     ///< the file has them as they are to be in memory; false where they are compressed
};

/// Where each item goes in memory when several are loaded together.
struct BlockLayout {
  struct Place {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
  };
  std::vector<std::uint64_t> blocks;  ///< bytes of each
  std::vector<Place> places;          ///< of the items, in the order in which they were given
};

inline constexpr std::uint64_t kStorageAlignment = 64;
/// Larger items have a block of their own, so that their memory is freed with them. Smaller ones share blocks of up
/// to kMaxBlock.
inline constexpr std::uint64_t kMaxGrouped = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMaxBlock = std::uint64_t{256} << 20;

/// The size of a page on this machine. File systems that want direct reads aligned want no more than that.
std::uint64_t phase_unit() noexcept;
/// How far behind a multiple of phase_unit() in memory the `bytes` bytes from `offset` of a file should begin: as far
/// as in the file, so that reads past the page cache can go straight to their place. Nothing when they are few, or
/// would not be aligned to kStorageAlignment.
std::optional<std::uint64_t> phase_of(std::uint64_t offset, std::uint64_t bytes) noexcept;

enum class Blocks : std::uint8_t {
  kSeveral,  ///< of at most kMaxBlock, and of one item that is larger than kMaxGrouped
  kOne,      ///< however large
};

/// Lays out items in the order of their bytes in the files. Each is aligned to kStorageAlignment. A contiguous read
/// then fills contiguous memory, except for padding. Pure. kCorrupt where a block would not fit in 64 bits.
BlockLayout lay_out(std::span<const BlockItem> items, Blocks blocks = Blocks::kSeveral);

}  // namespace penstock::archive
