#pragma once

#include <functional>
#include <string>

#include "data/tar/shard_list.h"
#include "data/tar/tar_parts.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// The samples of these shards, each shard once from front to back; "-" is the standard input. Shards may be compressed
/// (gzip). A shard with another number of samples than the list tells is kCorrupt behind its last one. `warn`: as
/// ShardsOptions has it.
SampleStream tar_stream(const ShardList& list, const TarFields& fields,
                        const std::function<void(const std::string&)>& warn);

}  // namespace penstock::data
