#pragma once

#include "format/format.h"

namespace penstock::format {

/// The last check before an index is believed, the same for every format: storages lie inside their sources, tensors
/// inside their storages, and all sizes fit. kCorrupt, kTruncated, kLimit with path, offset and tensor.
void check_index(const Index& index);

}  // namespace penstock::format
