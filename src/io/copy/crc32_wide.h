#pragma once

// The ways to compute a CRC-32 that need instructions which not every processor has. crc32.cpp takes the first one that
// the processor and a trial of it allow.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/copy/copy.h"

namespace penstock::io {

/// crc32 and crc32_copy (io/copy/crc32.h) by one set of instructions. The data is not empty.
struct Crc32Functions {
  std::uint32_t (*of)(std::uint32_t crc, std::span<const std::byte> data) = nullptr;
  std::uint32_t (*copy)(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) = nullptr;
};

/// Fastest first, null where the processor cannot: on x86-64 by carry-less multiplication of 512 and of 256 bits at a
/// time (io/copy/crc32_wide.cpp), on 64-bit ARM by its instructions for CRC-32 (io/copy/crc32_aarch64.cpp).
std::array<Crc32Functions, 2> wide_crc32s() noexcept;
/// For every processor (io/copy/crc32.cpp).
Crc32Functions narrow_crc32s() noexcept;

}  // namespace penstock::io
