#pragma once

// Writing to a descriptor, for those that own one.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io {

/// While it lives, growing a file beyond RLIMIT_FSIZE is only an EFBIG to this thread: the signal that comes with it
/// would end the process.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() noexcept;
  ~FileSizeSignalHeld();
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
  bool holds_ = false;
};

/// Writes all of `bytes` at an offset. Returns 0, or the system's error number.
int write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

}  // namespace penstock::io
