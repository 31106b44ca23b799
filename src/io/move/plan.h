#pragma once

// What is read, as data. Callers say which bytes of which source they want and where they go (Piece); make_plan orders
// and joins that into long reads (ReadRange), each scattered over its targets. Nothing is read here; engine.h runs a
// plan.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/read/read_costs.h"
#include "penstock/source.h"

namespace penstock::io {

/// Asks for `length` bytes of a source from `offset`, to be placed at `buffer_offset` of a buffer.
struct Piece {
  std::uint32_t source = 0;
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t buffer_offset = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// In place of a buffer: these bytes are dropped. They are read only because skipping them would cost more.
inline constexpr std::uint32_t kDiscard = 0xFFFFFFFF;

/// Part of a range, in file order: where its next `length` bytes go (buffer kDiscard: nowhere).
struct Target {
  std::uint32_t buffer = kDiscard;
  std::uint64_t buffer_offset = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Target&, const Target&) = default;
};

/// One contiguous read: `length` bytes of `source` at `offset`, scattered over targets [first_target, + target_count).
struct ReadRange {
  std::uint32_t source = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::size_t first_target = 0;
  std::size_t target_count = 0;

  friend bool operator==(const ReadRange&, const ReadRange&) = default;
};

/// What is read, and where each byte goes.
struct Plan {
  std::vector<ReadRange> ranges;  ///< ordered by (source, offset)
  std::vector<Target> targets;
  std::uint64_t payload_bytes = 0;
  std::uint64_t read_bytes = 0;
};

/// No range scatters over more targets (IOV_MAX).
inline constexpr std::size_t kMostTargets = 1024;

/// Orders pieces, joins neighbours and splits long ones, as reads of each source cost: pieces with a gap that is read
/// over are one range, and ranges are split at multiples of `piece` from their start, so that several threads share
/// them. Every byte of every piece is read once for each piece that has it. Pieces may overlap in the file, but not in
/// a buffer. Empty pieces are left out. kLimit when a length or offset does not fit.
Plan make_plan(std::span<const Piece> pieces, std::span<const Source> sources);
/// The same where reads of all sources cost `costs`. Pure.
Plan make_plan(std::span<const Piece> pieces, const ReadCosts& costs = {}, std::size_t max_targets = kMostTargets);

}  // namespace penstock::io
