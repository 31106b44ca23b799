#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::data {

/// Tells which of many files are not there. Each folder is listed once, of this machine or of a bucket, as long as this
/// lives; where only few of its files are asked for, each is looked at.
class FolderLists {
 public:
  /// Of each path, whether nothing is there: false also for URLs in no bucket, which nobody can list (`can_tell`).
  /// kPermission, kIo, and errors of stores.
  std::vector<bool> absent(const std::vector<std::string>& paths);

  static bool can_tell(const std::string& path);

 private:
  const std::vector<std::string>& names_in(const std::string& folder);

  /// The sorted names in each folder that was listed.
  std::unordered_map<std::string, std::vector<std::string>> listed_;
};

}  // namespace penstock::data
