#include "io/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

namespace penstock::io {

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_length) noexcept {
  return static_cast<std::uint32_t>(::crc32_combine(a, b, static_cast<z_off_t>(b_length)));
}

}  // namespace penstock::io
