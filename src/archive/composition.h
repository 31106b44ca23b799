#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "archive/archive_state.h"
#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::archive {

/// Tensors of opened files under other names, in another structure, as an archive by itself. Nothing is read. Not
/// thread-safe.
class Composition {
 public:
  /// The tensor as it stands in the new structure. One that is added twice is two tensors with common bytes.
  Value add(const Archive& from, std::size_t entry, std::string name);
  /// A value over the entries of `from` as one over those of the new archive; tensors keep their names.
  Value add(const Archive& from, const Value& part);
  /// The archive of what was added. At least one tensor or file must have been; call it once.
  Archive take(const Value& structure);
  /// Files of an archive of which no tensor may be wanted.
  void add_files(const Archive& from) { file_of(from); }

 private:
  struct File {
    const detail::ArchiveState* state = nullptr;
    std::uint32_t first_source = 0;
    std::vector<std::size_t> storages;  ///< where each of its storages is in the new index; kNowhere: not yet
  };
  File& file_of(const Archive& from);
  std::size_t storage_of(File& file, std::size_t storage);

  std::shared_ptr<detail::ArchiveState> out_ = std::make_shared<detail::ArchiveState>();
  std::vector<File> files_;
};

}  // namespace penstock::archive
