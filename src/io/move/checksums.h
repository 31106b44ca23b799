#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "io/move/engine.h"

namespace penstock::io {

/// Verifies recorded checksums from the parts of buffers as they arrive, in any order, from any thread. RangeReader
/// reports each chunk while it is in the processor's cache.
class Checksums {
 public:
  /// Both spans must outlive this. The checksums may not overlap in a buffer. kChecksum for an empty one that is not 0.
  Checksums(std::span<const Checksum> checksums, std::span<const SourcePtr> sources);

  bool empty() const noexcept { return checksums_.empty(); }
  /// Whether bytes of [buffer_offset, + length) of a buffer, which is not empty, have one to be compared.
  bool cover(std::uint32_t buffer, std::uint64_t buffer_offset, std::uint64_t length) const;
  /// Part of a buffer that one checksum covers.
  struct Run {
    std::size_t checksum = 0;  ///< which
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
  };
  /// The first of [begin, end) of a buffer.
  std::optional<Run> next_run(std::uint32_t buffer, std::uint64_t begin, std::uint64_t end) const;
  /// A run with that CRC-32 has arrived, once. As below.
  void arrived(const Run& run, std::uint32_t crc);
  /// [buffer_offset, + bytes.size()) of a buffer has arrived, and lies at `bytes`. kChecksum when that completes a run
  /// whose CRC is not the recorded one. Thread-safe.
  void arrived(std::uint32_t buffer, std::uint64_t buffer_offset, std::span<const std::byte> bytes);
  /// kInvalidArgument when the parts that arrived left a run incomplete.
  void require_complete() const;

 private:
  struct Part {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  struct State {
    const Checksum* checksum = nullptr;
    std::uint64_t missing = 0;
    std::vector<Part> parts = {};
  };

  /// The first one that ends behind that place.
  std::size_t first_behind(std::uint32_t buffer, std::uint64_t buffer_offset) const;
  void compare(const Checksum& checksum, std::uint32_t computed) const;

  std::span<const Checksum> checksums_;
  std::span<const SourcePtr> sources_;
  std::mutex mutex_;
  std::vector<State> states_;  // ordered by (buffer, buffer_offset)
};

}  // namespace penstock::io
