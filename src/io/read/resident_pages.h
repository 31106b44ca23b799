#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// Whether memory can be read without waiting for what stands behind it: a mapped file on a storage that hangs, swap, a
/// program that serves page faults. Believes for a while what it was told of the pages that it asked for last, because
/// neighbours share them. Used by one thread at a time.
class ResidentPages {
 public:
  /// Any answer may be old when its bytes are read. A tenth of a second bounds how old.
  static constexpr std::chrono::nanoseconds kBelieved = std::chrono::milliseconds(100);

  explicit ResidentPages(std::chrono::nanoseconds believed = kBelieved) noexcept : believed_(believed) {}

  /// True where each page of these bytes is in memory, now or less than `believed` ago. False also where the system
  /// does not say.
  bool hold(std::span<const std::byte> bytes) noexcept;

 private:
  std::chrono::nanoseconds believed_;
  std::uintptr_t begin_ = 0;  ///< of the pages that were there
  std::uintptr_t end_ = 0;
  std::chrono::nanoseconds until_{};  ///< when they have to be asked for again
};

}  // namespace penstock::io
