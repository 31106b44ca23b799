#pragma once

#include <vector>

#include "format/format.h"
#include "penstock/load.h"

namespace penstock::archive {

/// An entry over the whole of each storage that a tensor has elements in. It has one dimension and the tensors' type,
/// or uint8 when their types differ. kUnsupported when tensors of one storage disagree about the order of its bytes.
/// Pure.
std::vector<TensorEntry> whole_storages(const format::Index& index);

}  // namespace penstock::archive
