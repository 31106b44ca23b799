#pragma once

// How many threads a read is worth. One place for it, because loads, slices, decoding and checks must agree.

#include <cstddef>
#include <cstdint>

namespace penstock::io {

/// How much there is to do, which decides how many threads are worth starting. This is the one place that decides it
/// for reads.
struct Effort {
  /// How many bytes are worth a thread. Inflating is about five times slower than reading.
  static constexpr std::uint64_t kReadBytes = 2 * 1024 * 1024;
  static constexpr std::uint64_t kDecodedBytes = 256 * 1024;

  std::uint64_t parts = 0;  ///< more threads than parts would have nothing to do
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_thread = kReadBytes;
  std::uint64_t calls = 0;      ///< to the system, where there may be many with few bytes each
  bool waits_for_disk = false;  ///< threads mostly wait, and a disk is at its best with several requests
  std::size_t at_once = 0;      ///< threads only wait, each for one read: so many (ReadCosts)
};

/// How many threads to start. `asked`: what the user wants; 0 lets this function choose.
std::size_t threads_for(const Effort& effort, std::size_t asked);

}  // namespace penstock::io
