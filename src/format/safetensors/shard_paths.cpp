// An index names files, and a hostile one could name any file of the system. A shard must be a plain name in the folder
// of the index, also after symbolic links were followed.

#include "format/safetensors/shard_paths.h"

#include <filesystem>
#include <system_error>

#include "core/format.h"
#include "core/text.h"
#include "io/file/url.h"
#include "io/remote/remote.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

namespace fs = std::filesystem;

/// The same rule on every system, so that an index is not safe on one and unsafe on another: no separator, no drive, no
/// name that a shell or Windows gives a meaning.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == name.npos;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

std::string shard_path(std::string_view index_path, std::string_view name) {
  if (!is_plain_name(name)) {
    throw Error(ErrorCode::kUnsafe,
                core::format("the index names the shard {}; shards must be plain file names in the index's own folder",
                             core::quoted(name)),
                {std::string(index_path)});
  }
  // Whether an object is there is found out by opening it; there are no links.
  if (io::is_url(index_path)) return io::remote::sibling(index_path, name);
  const fs::path index(index_path);
  const fs::path joined = index.has_parent_path() ? index.parent_path() / name : fs::path(name);
  std::error_code error;
  const fs::path real = fs::canonical(joined, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  // Any other failure (permission, a loop of links) is said best by opening the file.
  if (error) return joined.string();
  const fs::path folder = real.parent_path();
  if (folder == fs::canonical(folder_of(index), error) || folder == fs::canonical(index, error).parent_path()) {
    return joined.string();
  }
  throw Error(
      ErrorCode::kUnsafe,
      core::format("the shard {} is a link to {}, outside the index's folder: copy the file there if you trust it",
                   core::quoted(name), core::quoted(real.string())),
      {std::string(index_path)});
}

}  // namespace penstock::format
