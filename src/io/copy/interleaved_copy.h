#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "io/copy/gather.h"

namespace penstock::io {

/// Copies of equal rows side by side, a line of the cache of each in turn, by one set of instructions: what counts for
/// rows that lie anywhere in memory is how many of them are waited for at once.
struct InterleavedCopy {
  std::size_t least_bytes = 0;  ///< of a row; smaller ones are faster one after the other
  void (*copy)(std::span<const GatherRow> rows, std::size_t row_bytes) = nullptr;
};

/// For longer rows the processor's own prefetchers do as much.
inline constexpr std::size_t kInterleavedUpTo = 16384;

/// Fastest first: with 32-byte registers, where this processor has them (else null), and what the compiler makes of it
/// for every processor.
std::array<InterleavedCopy, 2> interleaved_copies() noexcept;

}  // namespace penstock::io
