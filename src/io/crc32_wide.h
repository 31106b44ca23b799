#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::io {

using Crc32Function = std::uint32_t (*)(std::uint32_t crc, const std::byte* data, std::size_t bytes);

/// CRC-32 by 512-bit carry-less multiplication, or null where this processor has none.
Crc32Function wide_crc32() noexcept;

}  // namespace penstock::io
