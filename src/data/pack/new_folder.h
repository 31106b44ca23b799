#pragma once

#include <string>
#include <vector>

namespace penstock::data {

/// A folder that appears under its name with all its files or not at all; until then they are beside it, under a name
/// of their own that is removed with this object.
class NewFolder {
 public:
  /// kInvalidArgument where something is there already that is no empty folder; kNotFound, kPermission, kIo as `save`.
  explicit NewFolder(std::string path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where a file of it is to be written.
  std::string place(const std::string& name);
  /// Call once, last. kInvalidArgument where somebody put something there meanwhile.
  void commit();

 private:
  void remove() noexcept;

  std::string path_;
  std::string temporary_;
  std::vector<std::string> names_;
};

}  // namespace penstock::data
