#pragma once

// The statistics of a whole archive.

#include <cstdint>
#include <functional>
#include <vector>

#include "archive/inspect/statistics.h"
#include "penstock/load.h"

namespace penstock::archive {

/// The statistics of each tensor of an archive, in the order of its entries, read in little memory on all processors.
/// Of those without numbers only the dtype is known, and nothing is read. `seen` is told bytes that were read, from any
/// thread. kChecksum, kChanged, kTruncated, kIo; kLimit where a few bytes stand for more than 2^30 elements. Where
/// `wanted` is set, tensors that it says false of are not read either.
std::vector<Statistics> summarise(const Archive& archive, const std::function<void(std::uint64_t bytes)>& seen = {},
                                  const std::function<bool(const TensorEntry&)>& wanted = {});

}  // namespace penstock::archive
