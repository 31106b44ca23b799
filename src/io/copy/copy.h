#pragma once

// Copies that are large enough to choose how they are stored: through the caches or past them. Guarded copies, gathers
// and readers of mappings are made of these.

#include <cstddef>
#include <span>

namespace penstock::io {

/// Bytes that a processor loads into its caches at once.
inline constexpr std::size_t kLine = 64;

/// How copied bytes are stored.
enum class Stores {
  /// Through the caches: for targets that the caches hold.
  kCached,
  /// Past the caches, where the processor can: for copies larger than the caches. Memory is not fetched before it is
  /// overwritten, and the caches keep what they hold.
  kStreamed,
};

/// Which of them is faster for a large copy to the memory around `target` (io/copy/copy.cpp).
Stores stores_for(const std::byte* target) noexcept;

/// std::memcpy with these stores. Other threads see all of it when it returns.
void copy(std::byte* to, std::span<const std::byte> from, Stores stores) noexcept;

}  // namespace penstock::io
