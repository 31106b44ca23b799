#pragma once

// Tar archives taken apart and put together, so that changed ones have headers whose checksums hold.

#include <cstddef>
#include <span>
#include <vector>

namespace penstock::fuzz {

struct TarPiece {
  std::vector<std::byte> header;  ///< one block
  std::vector<std::byte> content;
};

/// The headers from the first on, each with its content, and what is left behind the last that has a size.
struct TarPieces {
  std::vector<TarPiece> pieces;
  std::vector<std::byte> rest;
};

TarPieces pieces_of(std::span<const std::byte> archive);
/// With checksums that hold; `sized`: the one whose header is to say how long its content is, or none beyond the last.
std::vector<std::byte> archive_of(const TarPieces& archive, std::size_t sized);

}  // namespace penstock::fuzz
