#pragma once

#include <string>
#include <vector>

#include "data/transform/op.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The dataset behind one more step: the tensors under `keys`, or all of them, as Dataset::cast says.
Dataset transformed(const Dataset& below, Op op, const std::vector<std::string>& keys);

/// The dataset behind a random crop of several parts of each sample at one place: Dataset::random_crop with scales.
Dataset cropped_together(const Dataset& below, CropOp op, const Scales& scales);

/// What an option `dtype=` of datasets and loaders makes (core/module_dtype.h): tensors of floating-point and complex
/// numbers are cast, and of others those that `named` has the key of. kInvalidArgument for a type that is neither,
/// where nothing is named.
Dataset typed(const Dataset& below, const DType& dtype, bool strict, const std::vector<std::string>& named);

}  // namespace penstock::data
