#pragma once

// The table of sources, with what tells its rows apart later. open_source (io/sources.cpp) finds the row of a location;
// what a location answers without being opened is in io/locations.h.

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/file/file_descriptor.h"
#include "penstock/source.h"

namespace penstock::io {

/// One row of the table of sources: what bytes a location names.
struct Scheme {
  /// What the location starts with, before ':'; empty: a plain path.
  std::string_view name;
  /// Opens the whole location, scheme included. Errors as open_source.
  Source (*open)(std::string_view location);
};

/// The table. The row of plain paths takes every location that no other row's name fits.
std::span<const Scheme> schemes() noexcept;

/// The file at `path`, which is taken as it is.
Source open_file(std::string_view path);
/// The file that `fd` has open. `status` is what fstat(2) gave for it, `path` its name in errors. The errors of
/// open_source when it is no regular file.
Source file_source(FileDescriptor fd, const struct stat& status, std::string path);
/// Whether the source is a file that one of these two opened.
bool is_file(const ByteSource& source) noexcept;
/// The file that a "file:" URL names (RFC 8089). The URL is percent-encoded and names this host or none.
Source open_file_url(std::string_view url);

/// The source that an OpenedFile reads, and any other itself: what tells classes apart looks at this one.
const ByteSource& beneath(const ByteSource& source) noexcept;
/// Whether Penstock opened the source by its name: a path, a URL of ours or a folder. Only then may anything be looked
/// for beside that name. Of all other sources, which are bytes in memory and classes of the program's own, the name was
/// chosen by whoever gave the bytes, which may be a stranger.
bool opened_by_name(const ByteSource& source) noexcept;

/// kTruncated unless [offset, offset + wanted) lies inside `source`.
void require_inside(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted);
/// Throws kTruncated for a source that lost bytes since it was opened: it gave `found` of the `wanted` bytes at
/// `offset`.
[[noreturn]] void throw_cut(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted, std::uint64_t found);

}  // namespace penstock::io
