#pragma once

#include <vector>

#include "format/format.h"
#include "penstock/load.h"

namespace penstock::archive {

/// An entry for the whole of each storage that tensors have elements in: one dimension, of the tensors' type where they
/// agree, else uint8. kUnsupported where tensors of one storage disagree about the order of its bytes. Pure.
std::vector<TensorEntry> whole_storages(const format::Index& index);

}  // namespace penstock::archive
