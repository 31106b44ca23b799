#pragma once

// Paths that no file can have, and open(2) as all of io calls it.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "io/file/file_descriptor.h"
#include "penstock/error.h"

namespace penstock::io {

/// kInvalidArgument for a path with a NUL character, behind which the system would not look.
inline void require_no_nul(std::string_view path) {
  const std::size_t end = path.find('\0');
  if (end == std::string_view::npos) return;
  throw Error(ErrorCode::kInvalidArgument, "the path has a NUL character in it; no file can have that name",
              {.path = std::string(path.substr(0, end))});
}

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

/// Whether a FIFO lies there, such as a shell's <(...), which gives its bytes once and in order.
inline bool is_fifo(const std::string& path) noexcept {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

}  // namespace penstock::io
