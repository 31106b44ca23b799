#pragma once

// A checkpoint of torch.distributed.checkpoint is a folder: one file `.metadata` says which tensors there are, and
// other files hold their bytes. So it is opened by its `.metadata`, and a folder without one by the list of its shards.

#include <span>
#include <vector>

#include "format/content.h"
#include "format/format.h"

namespace penstock::format {

/// The row of kFormats for a checkpoint folder, opened by its `.metadata`.
extern const Format kDcpFormat;
/// The row for the list of a folder's shards, which dcp::list_shards makes.
extern const Format kDcpShardsFormat;

namespace dcp {

/// The streams of tensors that a checkpoint has. The first source is its `.metadata`; the others are the files that it
/// names.
std::vector<Content> streams_of(std::span<const Source> sources);

}  // namespace dcp
}  // namespace penstock::format
