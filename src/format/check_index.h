#pragma once

#include "format/format.h"

namespace penstock::format {

// Every index passes here before anyone uses it, whatever its format. The readers of formats report what a file says;
// this part checks that it is possible. It also writes down once how each tensor is encoded, so that the parts that
// load ask `entry.encoding` and do not work it out again.

/// Checks that storages lie inside their sources, tensors inside their storages, and that all sizes fit; then completes
/// the encodings. kCorrupt, kTruncated, kLimit with path, offset and tensor.
void check_index(Index& index);

/// Completes the encoding of each entry: adds what its storage says, and drops a byte order where the type has none.
/// For an index that is used without check_index because its reader has made the same checks.
void write_encodings(Index& index) noexcept;

}  // namespace penstock::format
