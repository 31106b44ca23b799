#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>

#include "cli/standard_input.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Progress of work whose parts end in several threads.
class SharedProgress {
 public:
  SharedProgress(const char* verb, std::uint64_t all) : progress_(verb, all), all_(all) {}
  /// So many bytes more are done. Thread-safe.
  void add(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    progress_.at(std::min(all_, done_ += bytes));
  }

 private:
  Progress progress_;
  std::uint64_t all_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

/// A File (`path`, `archive`, `error`) that `read(archive, file)` has filled. Where that throws, the error is told on
/// standard error and kept, and the file has no archive.
template <class File, class Read>
File look_at(const std::string& path, const Read& read) {
  File file{.path = path};
  try {
    const Archive archive = open_input(path);
    read(archive, file);
    file.archive = archive;
  } catch (const Error& refused) {
    file.error = refused.within({.path = path}).what();
    print_error(file.error);
  }
  return file;
}

}  // namespace penstock::cli
