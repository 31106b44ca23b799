#pragma once

// The functions in the rows of the table of readers (io/readers.cpp). Each is defined in its reader's own file.

#include <cstdint>
#include <span>

#include "io/read/reader.h"

namespace penstock::io {

/// A source that is memory already.
bool memory_usable(const ByteSource& source);
/// Copies. The guard of guarded_copy protects it.
void memory_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// A source with a descriptor.
bool file_usable(const ByteSource& source) noexcept;
/// One preadv for hundreds of parts.
void pread_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
/// Maps the run, copies and unmaps it. For comparison, and for file systems that can be mapped but not read.
void mmap_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// DirectFile::read: past the page cache, as far as the file system lets it.
void direct_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// A source of the program's own that waits (ByteSource::waits).
bool waiting_usable(const ByteSource& source);
ReadCosts waiting_costs(const ByteSource& source) noexcept;
/// One ByteSource::read for all parts.
void waiting_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
/// Several reads at once, each by a thread.
void waiting_read_runs(const ByteSource& source, std::span<const SourceRun> runs);
/// The same for several sources.
void read_waiting(std::span<const SourceRuns> reads);

bool any_usable(const ByteSource& source) noexcept;
/// Those of the files that a composed source, a window or an OpenedFile lies in; of any other source, those of a file.
ReadCosts costs_within(const ByteSource& source);
/// ByteSource::read for each part.
void source_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// The sum of the parts; kTruncated when that many bytes from `offset` do not lie inside `source`.
std::uint64_t require_inside(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

}  // namespace penstock::io
