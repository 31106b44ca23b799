#pragma once

// The table of readers: how bytes move from a source to host memory. io/readers.cpp has its rows. The engine
// (io/move/engine.h) cuts a plan into calls of these.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io/copy/guarded.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// One of several reads of a source.
struct Run {
  std::uint64_t offset = 0;
  std::span<std::byte> into = {};
};

/// How bytes move from a source to host memory. Stateless; thread-safe.
struct Reader {
  std::string_view name;
  /// Whether it can serve this source.
  bool (*usable)(const ByteSource& source) noexcept;
  /// Fills all parts from one contiguous run at `offset`. kTruncated, kIo.
  void (*read)(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
  /// Whether each call waits for an answer over a network: then the engine asks by more threads than there are
  /// processors, for all of a range at once (to a device: for half a slot of the ring).
  bool waits_for_network = false;
  /// Reads several runs at once, in any order; null: one after the other is as good.
  void (*read_runs)(const ByteSource& source, std::span<const Run> runs) = nullptr;
};

/// The table, best first. The last one works for every source.
std::span<const Reader> readers() noexcept;
const Reader& reader_for(const ByteSource& source) noexcept;

/// The whole of a source as read-only memory: the source's own memory if it has some, else a mapping of its file. An
/// empty buffer when neither is possible.
Buffer map_source(const ByteSource& source);

/// kTruncated when the source's file is shorter now than when it was opened. Takes one system call; does nothing for
/// sources without a file.
void require_uncut(const ByteSource& source);

}  // namespace penstock::io
