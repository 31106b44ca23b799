#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "io/move/move.h"

namespace penstock::io {

/// The records of one move: finds out which record the parts of buffers belong to, as they arrive in any order and from
/// any thread, and gives them to its RecordCheck, which compares. RangeReader reports each chunk while it is in the
/// processor's cache.
class Checksums {
 public:
  /// The checksums may not overlap in a buffer. kChecksum for a wrong one of a record without bytes.
  explicit Checksums(std::span<const Checksum> checksums);

  bool empty() const noexcept { return checksums_.empty(); }
  /// Whether bytes of [buffer_offset, + length) of a buffer belong to a record. `length` is above 0.
  bool cover(std::uint32_t buffer, std::uint64_t buffer_offset, std::uint64_t length) const;
  /// Part of a buffer that belongs to one record.
  struct RecordRun {
    std::size_t checksum = 0;  ///< which record
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
  };
  /// The first run in [begin, end) of a buffer.
  std::optional<RecordRun> next_run(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end) const;
  /// A run has arrived and has this CRC-32. Each byte arrives once. kChecksum when it completes a record whose CRC is
  /// not the recorded one. Thread-safe.
  void arrived(const RecordRun& run, std::uint32_t crc);
  /// The same of all runs in [buffer_offset, + bytes.size()) of a buffer, which lies at `bytes`.
  void arrived(std::uint32_t buffer, std::uint64_t buffer_offset, std::span<const std::byte> bytes);
  /// kInvalidArgument when bytes of a record did not arrive.
  void require_complete() const;

 private:
  /// The first one that ends behind that place.
  std::size_t first_behind(std::uint32_t buffer, std::uint64_t buffer_offset) const;

  std::vector<Checksum> checksums_;  ///< those with bytes, ordered by (buffer, buffer_offset)
  std::mutex mutex_;                 ///< of their checks
};

}  // namespace penstock::io
