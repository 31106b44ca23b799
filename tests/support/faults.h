#pragma once

// System calls that write, of which one fails: a program that includes this has them in place of the C library's.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace penstock::test {

/// While it lives, the n-th of these calls (0: the first) gives EIO: it does nothing, or it is done and its answer
/// lost. Calls of all threads count. One at a time.
class WriteFault {
 public:
  enum class Kind : std::uint8_t { kRefused, kLost };

  WriteFault(Kind kind, int number) noexcept {
    kind_of() = kind;
    left().store(number);
  }
  ~WriteFault() { left().store(kNever); }
  WriteFault(const WriteFault&) = delete;
  WriteFault& operator=(const WriteFault&) = delete;

  /// Whether there were so many calls.
  static bool happened() noexcept { return left().load() < 0; }

  template <class Call>
  static long guarded(Call call) noexcept {
    const bool fails = left().load() != kNever && left().fetch_sub(1) == 0;
    if (!fails) return call();
    if (kind_of() == Kind::kLost) call();
    errno = EIO;
    return -1;
  }

 private:
  static constexpr int kNever = 1 << 30;
  static std::atomic<int>& left() noexcept {
    static std::atomic<int> one{kNever};
    return one;
  }
  static Kind& kind_of() noexcept {
    static Kind one{};
    return one;
  }
};

}  // namespace penstock::test

extern "C" {

#define PENSTOCK_FAULTY(type, name, parameters, ...)                                                       \
  [[gnu::used]] inline type name parameters {                                                              \
    return static_cast<type>(penstock::test::WriteFault::guarded([&] { return ::syscall(__VA_ARGS__); })); \
  }

PENSTOCK_FAULTY(int, fsync, (int fd), SYS_fsync, fd)
PENSTOCK_FAULTY(int, fdatasync, (int fd), SYS_fdatasync, fd)
PENSTOCK_FAULTY(int, msync, (void* at, size_t size, int flags), SYS_msync, at, size, flags)
PENSTOCK_FAULTY(int, ftruncate, (int fd, off_t size) noexcept, SYS_ftruncate, fd, size)
PENSTOCK_FAULTY(ssize_t, pwrite, (int fd, const void* from, size_t size, off_t at), SYS_pwrite64, fd, from, size, at)
PENSTOCK_FAULTY(int, renameat, (int from_folder, const char* from, int to_folder, const char* to) noexcept,
                SYS_renameat2, from_folder, from, to_folder, to, 0)
PENSTOCK_FAULTY(int, linkat, (int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept,
                SYS_linkat, from_folder, from, to_folder, to, flags)

#undef PENSTOCK_FAULTY

}  // extern "C"
