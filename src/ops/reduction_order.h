#pragma once

// Shared by the host's loops and the kernels.

#include <cstdint>

namespace penstock::ops {

/// The order of sums, which docs/design/operations.md defines: lanes within chunks, and chunks by the same rule.
inline constexpr std::int64_t kLanes = 32;
inline constexpr std::int64_t kChunk = 4096;

}  // namespace penstock::ops
