#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// Whether memory can be read without waiting for what stands behind it: a mapped file on a storage that hangs, swap, a
/// program that serves page faults. Remembers the pages that it asked the system for last, because neighbours share
/// them.
class ResidentPages {
 public:
  /// True where each page of these bytes is in memory now. False also where the system does not say.
  bool hold(std::span<const std::byte> bytes) noexcept;

 private:
  std::uintptr_t begin_ = 0;  ///< of the pages that were there
  std::uintptr_t end_ = 0;
};

}  // namespace penstock::io
