#include "core/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace penstock::core {
namespace {

double seconds_of(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double thread_seconds() noexcept { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double process_seconds() noexcept { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

std::optional<double> thread_stalled_seconds() noexcept {
  // "nanoseconds run, nanoseconds waited for a processor, slices". Opened anew: a loader may have more threads than
  // descriptors to spare.
  const int fd = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[96];
  const ssize_t got = ::read(fd, text, sizeof(text));
  ::close(fd);
  if (got <= 0) return std::nullopt;
  const char* const end = text + got;
  const auto* const space = static_cast<const char*>(std::memchr(text, ' ', static_cast<std::size_t>(got)));
  if (space == nullptr) return std::nullopt;
  std::uint64_t nanoseconds = 0;
  if (std::from_chars(space + 1, end, nanoseconds).ec != std::errc()) return std::nullopt;
  return 1e-9 * static_cast<double>(nanoseconds);
}

}  // namespace penstock::core
