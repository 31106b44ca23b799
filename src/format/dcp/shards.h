#pragma once

#include <optional>
#include <string>

#include "penstock/source.h"

namespace penstock::format::dcp {

/// A list of the `.safetensors` in a folder, where the first called `shard-...` says that it has chunks
/// (DCP_SHARDING_INFO): a source in memory that is named as the folder, which kDcpShardsFormat reads. Nothing where
/// none does.
std::optional<Source> list_shards(const std::string& folder);

}  // namespace penstock::format::dcp
