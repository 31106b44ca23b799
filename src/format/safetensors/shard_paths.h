#pragma once

// Files that lie beside an index that names them.

#include <string>
#include <string_view>
#include <vector>

#include "penstock/source.h"

namespace penstock::format {

/// The path of shard `name` beside the index at `index_path`. kUnsafe unless `name` is a plain file name and the file,
/// with symbolic links followed, lies in the folder of the index or in that of the file which the index itself is a
/// link to (Hugging Face's cache links index and shards alike into its folder of blobs). Empty when there is no such
/// file.
std::string shard_path(std::string_view index_path, std::string_view name);
/// For behind the opening of that path: kUnsafe or kChanged where another file was opened, because the name became a
/// link, or another file's, since it was looked up.
void require_shard(std::string_view index_path, std::string_view name, const ByteSource& opened);

/// How the error of files that are missing speaks of them: "shards beside the index", "fetch" them, and from where.
struct MissingFiles {
  std::string_view what;
  std::string_view verb;
  std::string_view from = {};
};
/// Opens the files of these names, in their order, by both. All are looked for before the first is opened, so that one
/// kNotFound names those that are missing.
std::vector<Source> open_beside(const std::string& index_path, const std::vector<std::string>& names,
                                const MissingFiles& words);

}  // namespace penstock::format
