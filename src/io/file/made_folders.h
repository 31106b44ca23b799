#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/forks.h"

namespace penstock::io {

/// Folders that were missing where something is written. Those in which nothing is go again, unless `keep` was called;
/// a forked child takes nothing back.
class MadeFolders {
 public:
  MadeFolders() = default;
  ~MadeFolders();
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  /// With those above it; nothing for a URL, because a store has no folders. kNotDirectory.
  void make(const std::string& folder);
  void keep() noexcept { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;  ///< the last one is the deepest
  const std::uint64_t forks_ = core::forks();
};

}  // namespace penstock::io
