#pragma once

#include <string>
#include <utility>
#include <vector>

#include "penstock/value.h"

namespace penstock::format::dcp {

/// Nests a flattened state dict again, as torch.distributed.checkpoint does: each item goes where its path leads, a
/// tuple of keys of dicts (strings) and positions in lists (integers); what a list lacks is None. Items without a path
/// keep their name as key. kCorrupt where paths contradict each other, kLimit for lists far longer than what is in
/// them.
Value nested(const std::vector<std::pair<std::string, Value>>& items,
             const std::vector<std::pair<std::string, Value>>& paths);

}  // namespace penstock::format::dcp
