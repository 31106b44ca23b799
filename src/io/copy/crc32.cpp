// Chooses among the ways to compute a CRC-32: instructions that the processor has (io/copy/crc32_wide.h), else
// libdeflate. zlib combines two CRCs.

#include "io/copy/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>

#include "io/copy/crc32_wide.h"

namespace penstock::io {
namespace {

std::uint32_t narrow_crc32(std::uint32_t crc, std::span<const std::byte> data) {
  return libdeflate_crc32(crc, data.data(), data.size());
}

std::uint32_t narrow_copy(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) {
  // What was copied a moment ago is in the first-level cache.
  constexpr std::size_t kBlock = 16 * 1024;
  while (!from.empty()) {
    const auto block = from.first(std::min(kBlock, from.size()));
    copy(to, block, stores);
    crc = narrow_crc32(crc, block);
    to += block.size();
    from = from.subspan(block.size());
  }
  return crc;
}

Crc32Functions best() noexcept {
  for (const Crc32Functions& wide : wide_crc32s()) {
    if (wide.of != nullptr) return wide;
  }
  return narrow_crc32s();
}

const Crc32Functions& chosen() noexcept {
  static const Crc32Functions functions = best();
  return functions;
}

}  // namespace

Crc32Functions narrow_crc32s() noexcept { return {narrow_crc32, narrow_copy}; }

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  // libdeflate takes a null pointer to ask for the initial value.
  return bytes.empty() ? crc : chosen().of(crc, bytes);
}

std::uint32_t crc32_copy(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) noexcept {
  return from.empty() ? crc : chosen().copy(crc, to, from, stores);
}

std::uint32_t crc32_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_length) noexcept {
  return static_cast<std::uint32_t>(::crc32_combine(a, b, static_cast<z_off_t>(b_length)));
}

}  // namespace penstock::io
