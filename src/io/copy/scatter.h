#pragma once

// One run of bytes that is cut into parts, each with a place of its own: what readers fill.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::io {

/// Where a part of a contiguous read goes; a null `to` drops the bytes.
struct Scatter {
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// Of all parts. They lie in memory, so that the sum fits; what a file says is added by require_inside.
inline std::uint64_t bytes_in(std::span<const Scatter> parts) noexcept {
  std::uint64_t bytes = 0;
  for (const Scatter& part : parts) bytes += part.bytes;
  return bytes;
}

/// Copies the run at `from` to its places. A part may be at its place already.
inline void fill_parts(std::span<const Scatter> parts, const std::byte* from) noexcept {
  for (const Scatter& part : parts) {
    if (part.to != nullptr && part.to != from && part.bytes > 0) std::memcpy(part.to, from, part.bytes);
    from += part.bytes;
  }
}

}  // namespace penstock::io
