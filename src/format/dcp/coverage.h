#pragma once

#include <string>
#include <vector>

#include "format/dcp/metadata.h"

namespace penstock::format::dcp {

/// Checks that the boxes of the chunks cover a tensor of `shape`, every element once. Removes chunks without elements,
/// and changes the order of the others. kCorrupt names the boxes that are at fault, kLimit for so many that comparing
/// them would take minutes.
void require_cover(std::vector<Chunk>& chunks, const Shape& shape, const std::string& item);

}  // namespace penstock::format::dcp
