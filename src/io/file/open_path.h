#pragma once

// open(2) as all of io calls it.

#include <fcntl.h>
#include <sys/types.h>

#include <cerrno>
#include <string>

#include "io/file/file_descriptor.h"

namespace penstock::io {

/// openat(2), which is tried again where a signal interrupts it, as one may where a file lies on a network or behind a
/// FUSE program. None with errno where it fails.
inline FileDescriptor open_at(int folder, const char* name, int flags, mode_t mode = 0) noexcept {
  int fd = ::openat(folder, name, flags, mode);
  while (fd < 0 && errno == EINTR) fd = ::openat(folder, name, flags, mode);
  return FileDescriptor(fd);
}

/// The same by a path from the working folder.
inline FileDescriptor open_path(const std::string& path, int flags, mode_t mode = 0) noexcept {
  return open_at(AT_FDCWD, path.c_str(), flags, mode);
}

}  // namespace penstock::io
