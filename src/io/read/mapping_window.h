#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/source.h"

namespace penstock::io {

/// Address space in which ranges of files are mapped one behind the other and unmapped together. They are unmapped
/// together because every unmapping, however small, interrupts all processors that run the process (they flush their
/// TLBs). Ranges are aligned so that the system can use huge pages. For one thread.
class MappingWindow {
 public:
  MappingWindow() noexcept = default;
  ~MappingWindow();
  MappingWindow(const MappingWindow&) = delete;
  MappingWindow& operator=(const MappingWindow&) = delete;

  /// [offset, + bytes) of a source's file as read-only memory, until the next call; null where it cannot be mapped or
  /// address space has run out. `bytes` > 0.
  const std::byte* map(const ByteSource& source, std::uint64_t offset, std::size_t bytes) noexcept;
  /// Unmaps all it holds.
  void release() noexcept;
  /// How many bytes it holds, as they were asked for.
  std::uint64_t mapped() const noexcept { return mapped_; }

  /// The time that unmapping has taken so far, the calls within `map` included. With small pages, unmapping takes up to
  /// half as long as the copy.
  struct Unmapped {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  const Unmapped& unmapped() const noexcept { return unmapped_; }

 private:
  bool reserve(std::size_t bytes) noexcept;
  void leave_out(std::size_t hole) noexcept;

  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::byte* next_ = nullptr;  ///< where the next range goes
  std::uint64_t mapped_ = 0;   ///< bytes
  Unmapped unmapped_;
};

}  // namespace penstock::io
