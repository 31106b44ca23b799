// An index names files, and a hostile one could name any file of the system. A shard must be a plain name in the folder
// of the index, also after symbolic links were followed. That is looked at before a file is opened, so that no device
// is, and of the file that was opened, because a link may have come there in between.

#include "format/safetensors/shard_paths.h"

#include "core/format.h"
#include "core/text.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// The same rule on every system, so that an index is not safe on one and unsafe on another: no separator, no drive, no
/// name that a shell or Windows gives a meaning.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == name.npos;
}

}  // namespace

std::string shard_path(std::string_view index_path, std::string_view name) {
  if (!is_plain_name(name)) {
    throw Error(ErrorCode::kUnsafe,
                core::format("the index names the shard {}; shards must be plain file names in the index's own folder",
                             core::quoted(name)),
                {std::string(index_path)});
  }
  return io::beside_inside(index_path, name);
}

void require_shard(std::string_view index_path, std::string_view name, const ByteSource& opened) {
  io::require_inside_folder(index_path, name, opened);
}

}  // namespace penstock::format
