#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/source.h"

namespace penstock::io {

/// Address space in which ranges of files are mapped one behind the other and unmapped together. Every unmapping, of
/// little or much, has all processors that run the process forget what they know of its pages. Ranges lie where the
/// system can show them by huge pages. Of one thread.
class MappingWindow {
 public:
  MappingWindow() noexcept = default;
  ~MappingWindow();
  MappingWindow(const MappingWindow&) = delete;
  MappingWindow& operator=(const MappingWindow&) = delete;

  /// [offset, + bytes) of a source's file as read-only memory, until the next call; null where it cannot be mapped or
  /// address space has run out. `bytes` > 0.
  const std::byte* map(const ByteSource& source, std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  bool reserve(std::size_t bytes) noexcept;
  void release() noexcept;

  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::byte* next_ = nullptr;  ///< where the next range goes
};

}  // namespace penstock::io
