#pragma once

// One header block of a tar archive (POSIX ustar and pax, old GNU, and V7), as it stands there.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::format {

inline constexpr std::size_t kTarBlock = 512;

/// What a block says of the member that follows it.
struct TarHeader {
  std::string name;          ///< prefix and name, the bytes as they are
  std::uint64_t size = 0;    ///< of the content
  char type = '0';           ///< '0' file, '5' folder, ...; V7's NUL is '0', or '5' for a name that ends in '/'
  bool is_extended = false;  ///< old GNU sparse: blocks with more of the map follow
};

/// Whether a block is all zeros: two of them end an archive.
bool is_zero_block(std::span<const std::byte> block) noexcept;
/// Whether the block's checksum is right, by POSIX's sum of unsigned bytes or by the signed one of some old programs.
bool has_tar_checksum(std::span<const std::byte> block) noexcept;
/// Reads one block of kTarBlock bytes, which begins at `offset`. kCorrupt for a wrong checksum or number; `path` is the
/// archive's, for errors.
TarHeader read_tar_header(std::span<const std::byte> block, std::uint64_t offset, const std::string& path);

/// Bytes with the padding to whole blocks behind them; nothing where that does not fit in 63 bits.
std::optional<std::uint64_t> tar_padded(std::uint64_t bytes) noexcept;

/// A header block of a regular file whose name has up to 100 bytes and whose size is below 8 GiB, else nothing: such a
/// member wants a pax header. Owner, group and time are 0, so that equal content makes equal bytes.
std::optional<std::string> tar_header_of(std::string_view name, std::uint64_t size, char type = '0');

}  // namespace penstock::format
