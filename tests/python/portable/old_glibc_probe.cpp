// What python/portable/old_glibc.cpp defines, in a shared object of its own and linked as the module of a wheel is.
// Each function returns what test_old_glibc.py compares with Python's own.

#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "python/portable/old_glibc.cpp"

namespace {

timespec steady_in(std::chrono::nanoseconds wait) {
  const std::int64_t end = now(CLOCK_MONOTONIC) + wait.count();
  return {.tv_sec = end / kNanoseconds, .tv_nsec = end % kNanoseconds};
}

}  // namespace

extern "C" {

/// Inodes by fstatat, stat, lstat, fstat, fstat64 and statx.
void inodes(const char* path, std::uint64_t* out) {
  struct stat status {};
  struct statx extended {};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  fstatat(AT_FDCWD, path, &status, 0);
  out[0] = status.st_ino;
  stat(path, &status);
  out[1] = status.st_ino;
  lstat(path, &status);
  out[2] = status.st_ino;
  fstat(file, &status);
  out[3] = status.st_ino;
  struct stat64 large {};
  fstat64(file, &large);
  out[4] = large.st_ino;
  statx(AT_FDCWD, path, 0, STATX_INO, &extended);
  out[5] = extended.stx_ino;
  close(file);
}

/// What stat() of a path says in errno.
int status_error(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? 0 : errno;
}

/// What waiting for a condition that nobody signals gives, as for a glibc without pthread_cond_clockwait().
int wait_in_vain(std::int64_t nanoseconds) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const timespec until = steady_in(std::chrono::nanoseconds(nanoseconds));
  pthread_mutex_lock(&mutex);
  const int result = wait_by_real_time(&condition, &mutex, CLOCK_MONOTONIC, &until);
  pthread_mutex_unlock(&mutex);
  return result;
}

/// What waiting to the end of the steady clock gives, when a thread signals the condition.
int wait_for_thread() {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  bool done = false;
  const timespec until = {.tv_sec = std::numeric_limits<std::int64_t>::max() / kNanoseconds, .tv_nsec = 0};
  pthread_mutex_lock(&mutex);
  std::thread other([&] {
    pthread_mutex_lock(&mutex);
    done = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
  });
  int result = 0;
  while (!done && result == 0) result = wait_by_real_time(&condition, &mutex, CLOCK_MONOTONIC, &until);
  pthread_mutex_unlock(&mutex);
  other.join();
  return result;
}

/// Whether the wait of the standard library, which takes the newest function that there is, times out.
bool standard_wait_times_out(std::int64_t nanoseconds) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  return !condition.wait_until(lock, until, [] { return false; });
}

int thread_id() { return gettid(); }

/// The name of a thread that gives itself one.
void name_of_thread(char* out) {
  std::thread([&] {
    pthread_setname_np(pthread_self(), "probe");
    std::ifstream("/proc/thread-self/comm").getline(out, 16);
  }).join();
}

bool random_numbers_differ() {
  std::random_device random;
  const std::array<unsigned, 4> first{random(), random(), random(), random()};
  const std::array<unsigned, 4> second{random(), random(), random(), random()};
  return first != second;
}

double length(double x, double y) { return std::hypot(x, y); }

/// Whether dlopen() finds a library, dlsym() a function in it and dladdr() that library from the function.
bool finds_library(const char* library, const char* function) {
  void* handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) return false;
  void* found = dlsym(handle, function);
  Dl_info info{};
  return found != nullptr && dladdr(found, &info) != 0 &&
         std::string(info.dli_fname).find(library) != std::string::npos;
}

/// What dlerror() says of a library that is not there.
const char* missing_library(const char* library) { return dlopen(library, RTLD_NOW) == nullptr ? dlerror() : ""; }

}  // extern "C"
