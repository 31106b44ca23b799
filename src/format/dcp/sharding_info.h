#pragma once

// Where the tensors of one safetensors shard lie in the whole ones, as torch's HuggingFaceStorageWriter notes it.

#include <string>
#include <string_view>
#include <vector>

#include "format/format.h"
#include "penstock/shape.h"

namespace penstock::format::dcp {

/// The metadata of a shard that says where its tensors begin in the whole ones:
/// `{"layer.weight": {"saved_offsets": [0, 128]}, ...}`.
inline constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

/// Where the first element of each entry of a shard lies in the whole tensor: zeros where the shard does not say.
/// kCorrupt for offsets that are missing, or of another rank than the entry; kLimit for extreme nesting. Memory does
/// not grow with what the metadata says of tensors that are not in the shard.
std::vector<Shape> offsets_of(const Index& shard, const std::string& path);

}  // namespace penstock::format::dcp
