#pragma once

// A checkpoint of torch.distributed.checkpoint is a folder: one file `.metadata` says which tensors there are, and
// other files hold their bytes. So it is opened by its `.metadata`, and a folder without one by the list of its shards.

#include <span>
#include <string_view>
#include <vector>

#include "format/content.h"
#include "format/format.h"

namespace penstock::format {

/// The row of kFormats for a checkpoint folder, opened by its `.metadata`.
extern const Format kDcpFormat;
/// The row for the list of a folder's shards, which dcp::list_shards makes.
extern const Format kDcpShardsFormat;
/// The row for a folder of torch_checkpointing, opened by its `metadata.pkl`.
extern const Format kRankFilesFormat;

namespace dcp {

/// The file of a folder of torch_checkpointing that says what its other files hold.
inline constexpr std::string_view kRankMetadataName = "metadata.pkl";

/// The streams of tensors that a checkpoint has. The first source is its `.metadata`; the others are the files that it
/// names.
std::vector<Content> streams_of(std::span<const Source> sources);

}  // namespace dcp
}  // namespace penstock::format
