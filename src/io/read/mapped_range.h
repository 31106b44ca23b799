#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "io/copy/copy.h"
#include "io/read/mapping_window.h"
#include "penstock/source.h"

namespace penstock::io {

/// A range of a file's cached pages as memory to copy from. Unlike a read by the system, such a copy can compute a
/// checksum in the same pass and bypass the processor's caches. Of one thread.
class MappedRange {
 public:
  /// Valid until the window maps another; copies are by those stores. Nothing where the file cannot be mapped or is
  /// shorter now than when it was opened, or address space has run out. `bytes` > 0, inside the source.
  static std::optional<MappedRange> map(MappingWindow& window, const ByteSource& source, std::uint64_t offset,
                                        std::size_t bytes, Stores stores);

  /// Copies [offset, + bytes) of the file, inside the range; with `crc`, goes on with that CRC-32. False when a page is
  /// no longer there or could not be read: nothing is known of `to` and `crc` then, and a read says what is wrong. A
  /// file that was cut inside its last page is not seen: ask require_uncut.
  [[nodiscard]] bool copy(std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint32_t* crc = nullptr) const;

 private:
  MappedRange(const std::byte* memory, std::uint64_t offset, Stores stores) noexcept
      : memory_(memory), offset_(offset), stores_(stores) {}

  const std::byte* memory_;
  std::uint64_t offset_;
  Stores stores_;
};

}  // namespace penstock::io
