#pragma once

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
/// The file that `fd` has open, of which fstat(2) gave `status` and which `path` names in errors. As open_source where
/// it is no regular file.
Source file_source(FileDescriptor fd, const struct stat& status, std::string path);
/// The file a "file:" URL names (RFC 8089): of this host, percent-encoded.
Source open_file_url(std::string_view url);

/// Checks that [offset, offset + wanted) lies inside `source`, or throws kTruncated with what it holds of it.
void require_inside(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted);
/// Throws the kTruncated of a source that gave `found` of the `wanted` bytes at `offset`, which lie inside its size: it
/// lost them since it was opened.
[[noreturn]] void throw_cut(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted, std::uint64_t found);

}  // namespace penstock::io
