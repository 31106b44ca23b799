#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/dcp/metadata.h"

namespace penstock::format::dcp {

/// Checks that the boxes of the chunks cover a tensor of `shape`, every element once. Removes chunks without elements,
/// and changes the order of the others. kCorrupt names the boxes that are at fault, kLimit for so many that comparing
/// them would take minutes.
void require_cover(std::vector<Chunk>& chunks, const Shape& shape, const std::string& item);

/// Where a chunk of an item lies.
struct ItemPlace {
  const StreamSpan* place;
  std::string_view item;
};

/// Checks that no two chunks lie in the same bytes, where one of them would have the other's content. kCorrupt names
/// two items.
void require_apart(std::vector<ItemPlace> places);

}  // namespace penstock::format::dcp
