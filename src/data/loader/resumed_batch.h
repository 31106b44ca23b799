#pragma once

// Whether a loader can go on from a position that another one told, perhaps with other ranks.

#include <cstdint>
#include <optional>

#include "penstock/loader.h"

namespace penstock::data {

/// How many batches of its epoch the loader has taken at `position`. `own`: what the loader tells of itself; `batches`:
/// its own in an epoch, nothing where nobody knows. kInvalidArgument where the position is of another dataset or order,
/// of batches that do not go with this loader's, or behind the end of the epoch.
std::int64_t resumed_batch(const LoaderPosition& position, const LoaderPosition& own,
                           std::optional<std::int64_t> batches);

}  // namespace penstock::data
