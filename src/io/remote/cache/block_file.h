#pragma once

// The file of one block:
//
//   bytes | u64 hash of each 16 KiB of them | text | u64 hash of the text | u32 length of the text | u32 mark
//
// A part of the bytes is read and checked without the rest, so that a row of a large array costs 16 KiB and not a whole
// block. Hashes are XXH3 with the seed that the caller gives, by which a file under another block's name is found too.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/copy/scatter.h"
#include "penstock/buffer.h"

namespace penstock::io::remote::block_file {

inline constexpr std::size_t kPiece = std::size_t{16} << 10;
inline constexpr std::size_t kMostText = 2048;
/// What stands behind the bytes of a block of one MiB has no more bytes than this.
inline constexpr std::size_t kMostEnding = std::size_t{4} << 10;

/// The hash of a text, as seeds are made of names.
std::uint64_t seed_of(std::string_view text) noexcept;

/// What stands behind the bytes.
std::string ending(std::span<const std::byte> bytes, std::string_view text, std::uint64_t seed);

/// Fills the parts from the bytes at `offset` of a block that has `length`. False for a file that is shorter or whose
/// hashes do not hold; the parts then hold anything.
bool read(int fd, std::uint64_t length, std::uint64_t seed, std::uint64_t offset, std::span<const Scatter> parts);

/// The text of a file of `file_bytes`; nothing where it is damaged.
std::optional<std::string> read_text(int fd, std::uint64_t file_bytes);

/// Reads a whole file, as a small one is: its text (`text_in`) and bytes (`holds`) are then looked at in memory. False
/// where it is shorter.
bool read_whole(int fd, std::span<std::byte> file);
/// The text of a file, or of the end of one.
std::optional<std::string> text_in(std::span<const std::byte> file);
/// Whether the file begins with the block's `length` bytes.
bool holds(std::span<const std::byte> file, std::uint64_t length, std::uint64_t seed);

}  // namespace penstock::io::remote::block_file
