#pragma once

#include <filesystem>

namespace penstock::fuzz {

/// A new folder that is removed with this, with all that is in it; in memory where the system has one.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace penstock::fuzz
