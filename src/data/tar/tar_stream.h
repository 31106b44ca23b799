#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/tar/tar_parts.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// The samples of these shards, each shard once from front to back; "-" is the standard input. Shards may be compressed
/// (gzip). `warn`: as ShardsOptions has it.
SampleStream tar_stream(const std::vector<std::string>& paths, const TarFields& fields,
                        const std::function<void(const std::string&)>& warn);

}  // namespace penstock::data
