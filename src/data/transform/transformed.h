#pragma once

#include <string>
#include <vector>

#include "data/transform/op.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The dataset behind one more step: the tensors under `keys`, or all of them, as Dataset::cast says.
Dataset transformed(const Dataset& below, Op op, const std::vector<std::string>& keys);

}  // namespace penstock::data
