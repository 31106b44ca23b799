#pragma once

#include <string>
#include <vector>

namespace penstock::format::dcp {

/// HuggingFaceStorageWriter names files by rank and number, both from 1:
/// `shard-00002-model-00001-of-00003.safetensors`. Checks that none is missing that other names tell of: each rank up
/// to the last one, and each number up to the count. Other names are passed over. kNotFound says what is missing.
/// Nothing tells how many ranks there were, so that files of the last ranks can be missing unnoticed.
void require_all_shards(const std::vector<std::string>& names, const std::string& folder);

}  // namespace penstock::format::dcp
