#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// Where a part of a contiguous read goes; a null `to` drops the bytes.
struct Scatter {
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// How bytes move from a source to host memory. Stateless; thread-safe.
struct Reader {
  std::string_view name;
  /// Whether it can serve this source.
  bool (*usable)(const ByteSource& source) noexcept;
  /// Fills all parts from one contiguous run at `offset`. kTruncated, kIo.
  void (*read)(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
};

/// The table, best first. The last one works for every source.
std::span<const Reader> readers() noexcept;
const Reader& reader_for(const ByteSource& source) noexcept;

/// The whole of a source as read-only memory: its own if it has some, a read-only mapping of a file otherwise, an empty
/// buffer when it can be neither.
Buffer map_source(const ByteSource& source);

/// Copies from memory that may be a mapping of a file somebody cuts: kTruncated (with `path`) instead of SIGBUS.
/// Installs its signal handler on first use and passes on every fault that is not its own. Beyond the copy it costs a
/// system call, so copy many rows by one guarded_gather. Does not see bytes that vanished from a file's last page,
/// which read as zeros: ask require_uncut after the copy.
void guarded_copy(std::byte* to, const std::byte* from, std::size_t bytes, std::string_view path);

struct GatherRow {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
};
/// Copies equal rows from memory that stays, wherever each lies: waits for several of them at once.
void gather(std::span<const GatherRow> rows, std::size_t row_bytes) noexcept;
/// The same from memory that may be a mapping of a file somebody cuts, as guarded_copy.
void guarded_gather(std::span<const GatherRow> rows, std::size_t row_bytes, std::string_view path);

/// kTruncated when the source's file is shorter now than when it was opened. One system call; nothing for other
/// sources.
void require_uncut(const ByteSource& source);

}  // namespace penstock::io
