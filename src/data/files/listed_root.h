#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace penstock::data {

/// The folder that files were listed below. Finding it may ask the system, and few datasets are asked for it: so it is
/// found once, by whoever asks first. Thread-safe.
class ListedRoot {
 public:
  explicit ListedRoot(std::function<std::string()> find) : find_(std::move(find)) {}

  /// How much of `path` it is; 0 where the path does not lie there.
  std::size_t size_in(const std::string& path) const {
    std::call_once(once_, [this] { root_ = find_(); });
    return path.starts_with(root_) ? root_.size() : 0;
  }

 private:
  std::function<std::string()> find_;
  mutable std::once_flag once_;
  mutable std::string root_;
};

}  // namespace penstock::data
