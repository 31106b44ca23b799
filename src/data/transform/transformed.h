#pragma once

#include <string>
#include <vector>

#include "data/transform/op.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// What an option `dtype=` of datasets and loaders makes (core/module_dtype.h): tensors of floating-point and complex
/// numbers are cast, and of others those that `named` has the key of. kInvalidArgument for a type that is neither,
/// where nothing is named.
Dataset typed(const Dataset& below, const DType& dtype, bool strict, const std::vector<std::string>& named);

}  // namespace penstock::data
