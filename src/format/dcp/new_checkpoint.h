#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/made_folders.h"
#include "io/file/output.h"
#include "penstock/save.h"

namespace penstock::format::dcp {

/// The folder of a distributed checkpoint that is being written, here or in a store. A checkpoint is what `.metadata`
/// names: its file gets a name that nothing in the folder has, and `.metadata` is replaced last, in one step. Until
/// then an earlier checkpoint in the folder is as it was; files of it go behind that. Without `commit` nothing remains.
/// Where `commit` fails and `.metadata` may be there all the same, its data stay.
class NewCheckpoint {
 public:
  /// Makes the folder where it is missing, and those above it. kInvalidArgument for one that has a checkpoint,
  /// or other things, where `existing` refuses that; kNotDirectory; the errors of listing it.
  NewCheckpoint(std::string_view path, const SaveOptions& options, io::Existing existing);
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;

  const std::string& data_name() const noexcept { return data_name_; }
  std::unique_ptr<io::Output> open_data(std::function<std::uint64_t()> bytes) const;
  /// Gives both files their names.
  void commit(io::Output& data, const std::string& metadata);

 private:
  void require_free(const std::vector<std::string>& names) const;
  std::string path_of(std::string_view name) const { return folder_ + std::string(name); }

  std::string folder_;  ///< with a '/' at its end
  const SaveOptions& options_;
  io::Existing existing_;
  io::MadeFolders made_;
  std::string data_name_;
  std::vector<std::string> earlier_;  ///< files of checkpoints that are there
};

}  // namespace penstock::format::dcp
