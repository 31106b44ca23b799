#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace penstock::io {

/// Owns a file descriptor. Move-only; -1 is none.
class FileDescriptor {
 public:
  FileDescriptor() noexcept = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { close(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// It is the caller's from here on.
  int release() noexcept { return std::exchange(fd_, -1); }

  /// Closes now. Gives the system's error number (a write that failed late may show only here), or 0.
  int close() noexcept {
    const int fd = std::exchange(fd_, -1);
    // Linux frees the descriptor even when close is interrupted, so it is never closed twice.
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int fd_ = -1;
};

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
