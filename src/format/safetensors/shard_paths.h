#pragma once

#include <string>
#include <string_view>

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

}  // namespace penstock::format
