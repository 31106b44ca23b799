#include "io/file/write_at.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace penstock::io {

FileSizeSignalHeld::FileSizeSignalHeld() noexcept {
  struct sigaction action {};
  ::sigaction(SIGXFSZ, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // as Python has it: one call in place of four
  holds_ = true;
  sigemptyset(&set_);
  sigaddset(&set_, SIGXFSZ);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

FileSizeSignalHeld::~FileSizeSignalHeld() {
  if (!holds_) return;
  const int saved = errno;
  const timespec at_once{};
  if (!was_pending_) ::sigtimedwait(&set_, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

int write_at(int fd, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  const FileSizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    } else if (written == 0 || errno != EINTR) {
      return written == 0 ? EIO : errno;
    }
  }
  return 0;
}

}  // namespace penstock::io
