#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/forks.h"
#include "data/pack/new_place.h"

namespace penstock::data {

/// kInvalidArgument where something is there that is no empty folder.
void require_new_folder(const std::string& path);

/// A folder of this machine that appears under its name with all its files or not at all; until then they are beside
/// it, under a name of their own that is removed with this object.
class NewFolder final : public NewPlace {
 public:
  /// kInvalidArgument where something is there already that is no empty folder; kNotFound, kPermission, kIo as `save`.
  explicit NewFolder(std::string path);
  ~NewFolder() override;
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  std::uint64_t save(const Value& value, const std::string& name, const SaveOptions& options) override;
  /// kInvalidArgument where somebody put something there meanwhile.
  void commit() override;

 private:
  void remove() noexcept;

  std::string path_;
  std::string temporary_;
  std::vector<std::string> names_;
  const std::uint64_t forks_ = core::forks();  // the folder is the parent's
};

}  // namespace penstock::data
