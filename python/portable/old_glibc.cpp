// The wheel runs with an older glibc than that of the machine that builds it.
//
// A linker binds each function to its newest version in the glibc at hand, and the module then asks for that version,
// which an older glibc lacks. So the functions that the module and libstdc++ call, and that became newer after glibc
// 2.17, are defined here, hidden: all of the module calls these. A function that only changed its version goes on to
// the version that glibc has always had, and still has. A function that is itself newer is made of what there was.
//
// With glibc 2.34 many of them moved from libpthread and libdl into libc. The module names these two libraries as
// needed (CMakeLists.txt), because there an older glibc has the functions; in a newer one the two are empty.
//
// script/wheel fails, and names the function, when one is missing here.

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

// The version that a function has which glibc always had for this processor, and a jump to a function of it.
#if defined(__x86_64__)
#define PENSTOCK_FIRST "GLIBC_2.2.5"
#define PENSTOCK_JUMP(name) "jmp " name "@PLT\n"
#elif defined(__aarch64__)
#define PENSTOCK_FIRST "GLIBC_2.17"
#define PENSTOCK_JUMP(name) "b " name "\n"
#else
#error "PENSTOCK_OLD_GLIBC wants the versions that this processor's glibc began with here"
#endif

// Defines `name` as that version of it. It jumps, so that dlopen() still sees from where it was called.
// clang-format off
#define PENSTOCK_USE_VERSION(name, version)            \
  asm(".pushsection .text." name ",\"ax\",%progbits\n" \
      ".globl " name "\n"                              \
      ".hidden " name "\n"                             \
      ".type " name ",%function\n"                     \
      ".symver old_" name "," name "@" version "\n"    \
      name ":\n"                                       \
      PENSTOCK_JUMP("old_" name)                       \
      ".size " name ",.-" name "\n"                    \
      ".popsection\n")
// clang-format on
#define PENSTOCK_USE_FIRST(name) PENSTOCK_USE_VERSION(name, PENSTOCK_FIRST)

PENSTOCK_USE_FIRST("dladdr");
PENSTOCK_USE_FIRST("dlerror");
PENSTOCK_USE_FIRST("dlopen");
PENSTOCK_USE_FIRST("dlsym");
PENSTOCK_USE_FIRST("hypot");
PENSTOCK_USE_FIRST("pthread_create");
PENSTOCK_USE_FIRST("pthread_detach");
PENSTOCK_USE_FIRST("pthread_getspecific");
PENSTOCK_USE_FIRST("pthread_join");
PENSTOCK_USE_FIRST("pthread_key_create");
PENSTOCK_USE_FIRST("pthread_key_delete");
PENSTOCK_USE_FIRST("pthread_mutex_trylock");
PENSTOCK_USE_FIRST("pthread_once");
PENSTOCK_USE_FIRST("pthread_rwlock_rdlock");
PENSTOCK_USE_FIRST("pthread_rwlock_unlock");
PENSTOCK_USE_FIRST("pthread_rwlock_wrlock");
PENSTOCK_USE_FIRST("pthread_setspecific");
PENSTOCK_USE_FIRST("pthread_sigmask");
#if defined(__x86_64__)
PENSTOCK_USE_VERSION("pthread_setname_np", "GLIBC_2.12");
#else
PENSTOCK_USE_FIRST("pthread_setname_np");
#endif

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
