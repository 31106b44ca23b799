#pragma once

// CRC-32 as zip records have it. Whoever moves bytes computes it on the way (record_check.h), so that no byte is read
// twice for it. Which instructions do it is chosen in crc32.cpp.

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/copy/copy.h"

namespace penstock::io {

/// The CRC-32 of zip, gzip and zlib, continued from `crc` (0 at the start).
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept;
/// The same, and copies the bytes to `to` in the same pass.
std::uint32_t crc32_copy(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) noexcept;
/// The CRC-32 of A followed by B, from those of A and B and B's length.
std::uint32_t crc32_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_length) noexcept;

}  // namespace penstock::io
