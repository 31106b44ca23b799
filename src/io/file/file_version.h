#pragma once

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

/// One system call. It sees all that was written before it, so ask behind what was read; not a second write within the
/// same tick of a file system's clock as the one before the file was opened. kIo.
FileState look_at(const ByteSource& source);

}  // namespace penstock::io
