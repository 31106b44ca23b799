// The wheel runs with an older glibc than that of the machine that builds it.
//
// A linker binds each function to its newest version in the glibc at hand, and the module then asks for that version,
// which an older glibc lacks. So the functions that the module and libstdc++ call, and that became newer after glibc
// 2.17, are defined here, hidden: all of the module calls these. They do what the older glibc has the means for.
//
// Threads and dlopen() are not here. They became newer when they moved into libc (glibc 2.34), and an old glibc looks
// for them in the library that the module names. So it is linked with stand-ins for those libraries
// (old_libraries.cpp).
//
// script/wheel fails, and names the function, when one is missing.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>

// The version of hypot() that has always been there. That of glibc 2.35 only drops the error handling of System V.
#if defined(__x86_64__)
asm(".symver old_hypot, hypot@GLIBC_2.2.5");
#elif defined(__aarch64__)
asm(".symver old_hypot, hypot@GLIBC_2.17");
#endif
extern "C" double old_hypot(double x, double y) noexcept;

namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNanoseconds + time.tv_nsec; }

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return nanoseconds(time);
}

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

/// What an older glibc can wait for is the clock that people and the network set. Setting it forward ends a wait early,
/// and libstdc++ then looks at the steady clock. Setting it back makes that wait longer, as for all programs then.
int wait_by_real_time(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const std::int64_t real_now = now(CLOCK_REALTIME);
  // The end of all time is a time to wait for, too.
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() - real_now;
  const std::int64_t end = real_now + std::min(nanoseconds(*until) - now(clock), most);
  const timespec real{.tv_sec = end / kNanoseconds, .tv_nsec = end % kNanoseconds};
  return pthread_cond_timedwait(condition, mutex, &real);
}

}  // namespace

extern "C" {

double hypot(double x, double y) noexcept { return old_hypot(x, y); }

// Whether the process has a single thread (2.32), for which libstdc++ counts references without atomic instructions.
char __libc_single_threaded = 0;

// 2.33; before, they were part of the headers. The kernel's structure is that of glibc on both processors.
int fstatat(int folder, const char* path, struct stat* out, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, out, flags));
}
int stat(const char* path, struct stat* out) noexcept { return fstatat(AT_FDCWD, path, out, 0); }
int lstat(const char* path, struct stat* out) noexcept { return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW); }
int fstat(int file, struct stat* out) noexcept { return static_cast<int>(syscall(SYS_fstat, file, out)); }
int fstat64(int file, struct stat64* out) noexcept { return static_cast<int>(syscall(SYS_fstat, file, out)); }

// 2.28. An older kernel says ENOSYS, as with a newer glibc.
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  return static_cast<int>(syscall(SYS_statx, folder, path, flags, mask, out));
}

// 2.30.
pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

// 2.36, for std::random_device.
std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) std::abort();
  }
  return number;
}

// 2.30, for waits of libstdc++ until a time of the steady clock.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static const auto newer = reinterpret_cast<ClockWait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  return (newer != nullptr ? newer : wait_by_real_time)(condition, mutex, clock, until);
}

}  // extern "C"
