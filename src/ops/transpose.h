#pragma once

// The inner loop of `copy` where both sides are contiguous in different dimensions, as Fortran order is.

#include <cstddef>

#include "ops/loop_nest.h"

namespace penstock::ops {

/// Whether `transpose` knows elements of this width.
bool can_transpose(std::size_t width) noexcept;

/// Copies two dimensions of elements of `width` bytes: `across` contiguous in `from`, `along` contiguous in `to`.
/// Touches each cache line of both sides once where they are long enough.
void transpose(std::size_t width, const Dim& across, const Dim& along, const std::byte* from, std::byte* to);

}  // namespace penstock::ops
