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
/// The file that `fd` has open. `status` is what fstat(2) gave for it, `path` its name in errors. The errors of
/// open_source when it is no regular file.
Source file_source(FileDescriptor fd, const struct stat& status, std::string path);
/// The file that a "file:" URL names (RFC 8089). The URL is percent-encoded and names this host or none.
Source open_file_url(std::string_view url);

/// kTruncated unless [offset, offset + wanted) lies inside `source`.
void require_inside(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted);
/// Throws kTruncated for a source that lost bytes since it was opened: it gave `found` of the `wanted` bytes at
/// `offset`.
[[noreturn]] void throw_cut(const ByteSource& source, std::uint64_t offset, std::uint64_t wanted, std::uint64_t found);

}  // namespace penstock::io
