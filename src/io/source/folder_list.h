#pragma once

// A folder as a source: it stands for the shards of a checkpoint that no file lists (format/dcp/shards.h).

#include <string>
#include <vector>

#include "penstock/source.h"

namespace penstock::io {

/// Names of files in a folder, for formats of folders that have no file which lists them. The source has the folder's
/// name, and the names as its bytes. It is a class of its own, because what it names is opened: no bytes of a file may
/// pass for it.
class FolderList final : public ByteSource {
 public:
  FolderList(std::string folder, std::vector<std::string> names);

  const std::vector<std::string>& names() const noexcept { return names_; }

  const std::string& name() const noexcept override { return bytes_.name(); }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override { bytes_.read(offset, into); }
  Buffer memory() const override { return bytes_.memory(); }

 private:
  std::vector<std::string> names_;
  Source bytes_;
};

/// The source as such a list; null for any other.
const FolderList* as_folder_list(const ByteSource& source) noexcept;

}  // namespace penstock::io
