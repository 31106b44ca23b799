#include "io/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/crc32_wide.h"

namespace penstock::io {
namespace {

std::uint32_t narrow_crc32(std::uint32_t crc, const std::byte* data, std::size_t bytes) {
  return libdeflate_crc32(crc, data, bytes);
}

Crc32Function best_crc32() noexcept {
  for (const Crc32Function wide : wide_crc32s()) {
    if (wide != nullptr) return wide;
  }
  return narrow_crc32;
}

}  // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  // libdeflate takes a null pointer to ask for the initial value.
  if (bytes.empty()) return crc;
  static const Crc32Function best = best_crc32();
  return best(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_length) noexcept {
  return static_cast<std::uint32_t>(::crc32_combine(a, b, static_cast<z_off_t>(b_length)));
}

void require_crc(std::uint32_t computed, std::uint32_t recorded, std::uint64_t bytes, ErrorContext where) {
  if (computed == recorded) return;
  throw Error(
      ErrorCode::kChecksum,
      core::format("the {} have CRC-32 {:08x}, but {:08x} is recorded for them; the file is damaged, so fetch or "
                   "write it again",
                   core::format_bytes(bytes), computed, recorded),
      std::move(where));
}

}  // namespace penstock::io
