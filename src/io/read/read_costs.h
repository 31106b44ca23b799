#pragma once

// What reads of a source cost: the one answer from which every planner takes which neighbours it reads together, how
// long a read may be and how many reads are under way at once. The reader of a source gives it (io/readers.cpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "penstock/source.h"

namespace penstock::io {

/// The defaults are those of a file of this machine.
struct ReadCosts {
  /// Gaps are read over, rather than asked around, up to an eighth of what lies before them in the same read, but at
  /// least and at most these.
  std::uint64_t least_gap = std::uint64_t{16} << 10;
  std::uint64_t most_gap = std::uint64_t{16} << 10;
  /// Longer reads are cut.
  std::uint64_t piece = std::uint64_t{8} << 20;
  /// Reads that are waited for at once, because an answer takes long and no processor; 0: a read takes a processor.
  /// Where a load begins with them, and takes more while that brings more (io/read/depth.h).
  std::size_t at_once = 0;
  /// No more are worth it, because whoever answers them has a Depth of its own (io/remote/reactor.h).
  bool is_paced = false;
  /// What one of them may hold beside the memory that it fills.
  std::uint64_t request_memory = 0;

  /// The longest gap that is read over behind `before` bytes of the same read.
  constexpr std::uint64_t gap_behind(std::uint64_t before) const noexcept {
    return std::clamp(before / 8, least_gap, most_gap);
  }
  constexpr bool waits() const noexcept { return at_once > 0; }

  friend bool operator==(const ReadCosts&, const ReadCosts&) = default;
};

/// What reads of a disk cost, past the page cache or into it. A thread may keep a huge page for its blocks
/// (DirectScratch).
inline constexpr ReadCosts kDiskCosts{.at_once = 8, .request_memory = std::uint64_t{2} << 20};

/// Those of a source, by the reader that serves it.
ReadCosts costs_of(const ByteSource& source);

}  // namespace penstock::io
