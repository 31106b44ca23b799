#pragma once

// What the rows of the table of readers are made of; each function is defined in its reader's own file.

#include <cstdint>
#include <span>

#include "io/read/reader.h"

namespace penstock::io {

/// A source that is memory already.
bool memory_usable(const ByteSource& source) noexcept;
/// Copies, under the guard of guarded_copy.
void memory_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// A source with a descriptor.
bool file_usable(const ByteSource& source) noexcept;
/// One preadv for hundreds of parts.
void pread_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);
/// Maps the run, copies and unmaps it: for file systems whose pages may be shared but not copied out by calls, and to
/// compare with.
void mmap_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// DirectFile::read: past the page cache, as far as the file system lets it.
void direct_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

bool any_usable(const ByteSource& source) noexcept;
/// ByteSource::read for each part.
void source_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

/// The sum of the parts; kTruncated when that many bytes from `offset` do not lie inside `source`.
std::uint64_t require_inside(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts);

}  // namespace penstock::io
