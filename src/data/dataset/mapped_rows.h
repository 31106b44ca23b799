#pragma once

#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::data {

/// The tensor as a view of its mapped file where it lies in that as it will in memory; otherwise loaded.
Tensor mapped_or_loaded(const LazyTensor& lazy);

}  // namespace penstock::data
