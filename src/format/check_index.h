#pragma once

// The check that every index passes before anybody believes it: readers of formats return what a file says, and this
// refuses what cannot be. It is the border between a hostile file and the rest.

#include "format/format.h"

namespace penstock::format {

/// Checks that storages lie inside their sources, tensors inside their storages, and that all sizes fit; then completes
/// the encodings. kCorrupt, kTruncated, kLimit with path, offset and tensor.
void check_index(Index& index);

/// Completes the encoding of each entry: adds what its storage says, and drops a byte order where the type has none.
/// For an index that is used without check_index because its reader has made the same checks.
void write_encodings(Index& index) noexcept;

}  // namespace penstock::format
