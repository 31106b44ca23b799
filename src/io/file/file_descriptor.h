#pragma once

#include <unistd.h>

#include <cerrno>
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

  /// Closes now. Gives the system's error number (a write that failed late may show only here), or 0.
  int close() noexcept {
    const int fd = std::exchange(fd_, -1);
    // Linux frees the descriptor even when close is interrupted, so it is never closed twice.
    return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int fd_ = -1;
};

}  // namespace penstock::io
