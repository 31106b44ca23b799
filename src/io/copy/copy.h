#pragma once

#include <cstddef>
#include <span>

namespace penstock::io {

/// Which way copied bytes take to memory.
enum class Stores {
  /// Through the caches, for a target that they hold.
  kCached,
  /// Past them where the processor can: memory is not fetched to be overwritten, and what is in the caches stays. For
  /// more than they hold.
  kStreamed,
};

/// The faster way to much memory around `target`. What the process has not touched yet the system zeroes at the first
/// store, a page at a time, so that the caches hold it then.
Stores stores_for(const std::byte* target) noexcept;

/// std::memcpy by those stores. Complete for other threads on return.
void copy(std::byte* to, std::span<const std::byte> from, Stores stores) noexcept;

}  // namespace penstock::io
