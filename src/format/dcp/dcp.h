#pragma once

#include <span>
#include <vector>

#include "format/folder.h"
#include "format/format.h"

namespace penstock::format {

/// `.metadata` of torch.distributed.checkpoint.
extern const Format kDcpFormat;
/// The list of a folder's shards that dcp::list_shards makes.
extern const Format kDcpShardsFormat;

namespace dcp {

/// The streams that `.metadata`, the first of the sources, describes; the others are the files that it names.
std::vector<Content> streams_of(std::span<const Source> sources);

}  // namespace dcp
}  // namespace penstock::format
