#pragma once

// The inner loop of gather.h, once for each set of instructions.

#include <array>
#include <cstddef>
#include <span>

namespace penstock::io {

/// One of several rows of equal size that are copied at once.
struct GatherRow {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
};

/// Copies rows of equal size side by side, one cache line of each in turn, by one set of instructions. It is fast
/// because several rows are waited for at once (io/copy/interleaved_copy.cpp).
struct InterleavedCopy {
  std::size_t least_bytes = 0;  ///< of a row; smaller rows are copied faster one after the other
  void (*copy)(std::span<const GatherRow> rows, std::size_t row_bytes) = nullptr;
};

/// For longer rows the processor's own prefetchers do as much.
inline constexpr std::size_t kInterleavedUpTo = 16384;

/// Fastest first: one for processors with 32-byte registers (null on others), and one for every processor.
std::array<InterleavedCopy, 2> interleaved_copies() noexcept;

}  // namespace penstock::io
