// An index names files, and a hostile one could name any file of the system. A shard must be a plain name in the folder
// of the index, also after symbolic links were followed. That is looked at before a file is opened, so that no device
// is, and of the file that was opened, because a link may have come there in between.

#include "format/safetensors/shard_paths.h"

#include <algorithm>

#include "core/format.h"
#include "core/text.h"
#include "io/locations.h"
#include "io/remote/remote.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kNamedInErrors = 5;

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

std::vector<Source> open_beside(const std::string& index_path, const std::vector<std::string>& names,
                                const MissingFiles& words) {
  std::vector<std::string> paths;
  paths.reserve(names.size());
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    paths.push_back(shard_path(index_path, name));
    if (paths.back().empty()) missing.push_back(core::quoted(name));
  }
  if (!missing.empty()) {
    const bool is_one = missing.size() == 1;
    const std::string count =
        core::format("{} of the {} {} {} missing", missing.size(), names.size(), words.what, is_one ? "is" : "are");
    const std::string_view more = missing.size() > kNamedInErrors ? ", ..." : "";
    missing.resize(std::min(missing.size(), kNamedInErrors));
    throw Error(ErrorCode::kNotFound,
                core::format("{}: {}{}; {} {}{}", count, fmt::join(missing, ", "), more, words.verb,
                             is_one ? "it" : "them", words.from),
                {index_path});
  }
  std::vector<Source> opened = io::remote::open_sources(paths);
  for (std::size_t i = 0; i < opened.size(); ++i) require_shard(index_path, names[i], *opened[i]);
  return opened;
}

}  // namespace penstock::format
