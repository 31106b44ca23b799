#pragma once

#include "data/dataset/slices.h"
#include "data/dataset/window_sizes.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Windows over slices that are put together, as JoinSlices says. The errors of windows().
Dataset joined_windows(const SlicedArrays& slices, const WindowSizes& sizes, bool shuffled);

}  // namespace penstock::data
