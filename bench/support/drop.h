#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "io/read/residency.h"
#include "penstock/source.h"

namespace penstock::bench {

/// Which part of a file is in the page cache; 0 where the system does not tell.
inline double share_in_cache(const std::string& path) {
  const Source source = open_source(path);
  return source.size() == 0 ? 0 : io::cached_share(*source, 0, source.size()).value_or(0);
}

/// Takes a file out of the page cache. Throws where it stays, as on a tmpfs or while another process maps it.
inline void drop_from_cache(const std::string& path) {
  constexpr double kMostLeft = 0.01;
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    // Pages that are not written yet stay.
    const bool advised = fd >= 0 && ::fdatasync(fd) == 0 && ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    ::close(fd);
    if (advised && share_in_cache(path) <= kMostLeft) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw std::runtime_error("cannot be dropped from the page cache: " + path);
}

}  // namespace penstock::bench
