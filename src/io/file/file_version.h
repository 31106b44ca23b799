#pragma once

// Whether a file is still the one that was opened. Loads look after they have read, so that a file which somebody
// writes meanwhile is an error and no mixture.

#include <sys/stat.h>

#include <cstdint>

#include "penstock/source.h"

namespace penstock::io {

FileVersion version_of(const struct stat& status) noexcept;

/// What became of a source's file since it was opened.
enum class FileState : std::uint8_t {
  kAsOpened,  ///< or the source has no file
  kCut,       ///< it is shorter
  kChanged,   ///< it was written to, or is longer
};

/// Compares the file with the version that was opened, by one system call. Call it after the bytes were read: it sees
/// every write before it, with one exception. A write is missed when it comes within the same tick of the file system's
/// clock as the last write before the file was opened, and leaves the size as it was. kIo.
FileState look_at(const ByteSource& source);

}  // namespace penstock::io
