#pragma once

// What `stats`, `hash` and `report` share: several files one after the other, tensors asked for by name, and one bad
// file that does not end the rest.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/name_patterns.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "core/shown_url.h"
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

/// Which tensors of several files were asked for by name; without names, all.
class WantedTensors {
 public:
  explicit WantedTensors(std::vector<std::string> names) : patterns_(std::move(names)) {}

  bool are_all() const noexcept { return patterns_.empty(); }
  /// Of each tensor of `archive`, whether it is one of them.
  std::vector<bool> of(const Archive& archive) {
    std::vector<bool> wanted;
    for (const TensorEntry& entry : archive.entries()) {
      wanted.push_back(are_all() || patterns_.match(entry.name));
      if (!are_all()) known_.push_back(entry.name);
    }
    return wanted;
  }
  /// kKeyNotFound for a name that no tensor has had.
  void require_used() const { patterns_.require_used(known_); }

 private:
  NamePatterns patterns_;
  std::vector<std::string> known_;
};

/// `wanted` as a function of one of `archive`'s entries. Both have to live as long as it does.
inline std::function<bool(const TensorEntry&)> asked_of(const Archive& archive, const std::vector<bool>& wanted) {
  return [first = archive.entries().data(), &wanted](const TensorEntry& entry) {
    return wanted[static_cast<std::size_t>(&entry - first)];
  };
}

/// A File (`path`, `archive`, `refused`) that `read(archive, file)` has filled. Where that throws, the error is told on
/// standard error and kept as JSON, and the file has no archive.
template <class File, class Read>
File look_at(const std::string& path, const Headerless& headerless, const Read& read) {
  File file{.path = core::shown_path(path)};
  try {
    const Archive archive = headerless.open(path);
    read(archive, file);
    file.archive = archive;
  } catch (const Error& refused) {
    file.refused = error_json(refused, path);
    print_error(refused.within({.path = path}).what());
  }
  return file;
}

}  // namespace penstock::cli
