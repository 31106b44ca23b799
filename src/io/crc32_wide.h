#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::io {

using Crc32Function = std::uint32_t (*)(std::uint32_t crc, const std::byte* data, std::size_t bytes);

/// CRC-32 by carry-less multiplication of 512 and of 256 bits, fastest first; null where this processor has none.
std::array<Crc32Function, 2> wide_crc32s() noexcept;

}  // namespace penstock::io
