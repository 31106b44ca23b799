#pragma once

// The table of readers: how bytes move from a source to host memory. io/readers.cpp has its rows. The engine
// (io/move/engine.h) cuts a plan into calls of these.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/copy/guarded.h"
#include "io/read/read_costs.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// One of several reads of a source.
struct SourceRun {
  std::uint64_t offset = 0;
  std::span<std::byte> into = {};
};

/// How bytes move from a source to host memory. Stateless; thread-safe.
struct Reader {
  std::string_view name;
  /// Whether it can serve this source.
  bool (*usable)(const ByteSource& source);
  /// Fills all parts from one contiguous run at `offset`. kTruncated, kIo.
  void (*read)(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
  /// What its reads of the source cost; null: as those of a file.
  ReadCosts (*costs)(const ByteSource& source) = nullptr;
  /// Reads several runs at once, in any order; null: one after the other is as good.
  void (*read_runs)(const ByteSource& source, std::span<const SourceRun> runs) = nullptr;
};

/// The table, best first. The last one works for every source.
std::span<const Reader> readers() noexcept;
const Reader& reader_for(const ByteSource& source);

/// Reads of one source.
struct SourceRuns {
  Source source;
  std::vector<SourceRun> runs = {};
};
/// Reads of several sources: those of servers all at once (behind a cache one source after the other), those of sources
/// that wait by threads, all others one after the other. kTruncated, kIo, and what servers answer.
void read_at_once(std::span<const SourceRuns> reads);

/// The whole of a source as read-only memory: the source's own memory if it has some, else a mapping of its file. An
/// empty buffer when neither is possible.
Buffer map_source(const ByteSource& source);

/// kTruncated when the source's file is shorter now than when it was opened. Takes one system call; does nothing for
/// sources without a file.
void require_uncut(const ByteSource& source);

}  // namespace penstock::io
