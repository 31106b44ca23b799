#pragma once

#include <utility>
#include <vector>

#include "penstock/tensor.h"
#include "value/graph.h"

namespace penstock::python {

/// Arrays that another library hands over one by one may be views of the same memory. Those that overlap become tensors
/// on one common buffer, so that a `.pt` keeps what they share, which is for reading.
void share_memory(std::vector<std::pair<detail::ValueNode*, Tensor>>& tensors);

}  // namespace penstock::python
