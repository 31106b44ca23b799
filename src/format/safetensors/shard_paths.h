#pragma once

#include <string>
#include <string_view>

namespace penstock::format {

/// The path of shard `name` beside the index at `index_path`. kUnsafe unless `name` is a plain file name and the file,
/// with symbolic links followed, lies in the folder of the index or in that of the file which the index itself is a
/// link to (Hugging Face's cache links index and shards alike into its folder of blobs). Empty when there is no such
/// file.
std::string shard_path(std::string_view index_path, std::string_view name);

}  // namespace penstock::format
