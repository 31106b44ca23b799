#pragma once

// The content of one item of a folder of torch_checkpointing, out of the files of its ranks.

#include <cstdint>
#include <vector>

#include "format/dcp/rank_metadata.h"
#include "format/format.h"

namespace penstock::format::dcp {

/// A rank's file of an item.
struct RankFile {
  std::int64_t rank = 0;
  Source source;
  std::uint32_t number = 0;  ///< among the sources of the archive
  Index index;               ///< its storages name that source
};

/// What the files of an item hold together: all keys of their dicts, whole tensors in the places of the parts that
/// `item` describes, and of everything else what the first rank has. Adds its entries, storages and unknown names to
/// `index`. kCorrupt where files and description contradict each other, kUnsupported for parts that cannot be put
/// together, kLimit for content nested too deep. There is at least one file.
Value read_item(const RankedItem& item, std::vector<RankFile> files, const OpenOptions& options, Index& index);

}  // namespace penstock::format::dcp
