#pragma once

// The inner loops of `copy` for elements that lie apart (kernels.h).

#include <cstddef>

#include "ops/loop_nest.h"

namespace penstock::ops {

/// Copies one dimension, element by element. Elements may be of any width. Neither side may overlap the other.
void copy_row(std::size_t width, const Dim& dim, const std::byte* from, std::byte* to) noexcept;

/// Copies two dimensions, however far apart their elements lie.
void copy_plane(std::size_t width, const Dim& outer, const Dim& inner, const std::byte* from, std::byte* to) noexcept;

/// The same for a dimension that is much shorter than the other.
void copy_long_plane(std::size_t width, const Dim& longer, const Dim& shorter, const std::byte* from,
                     std::byte* to) noexcept;

}  // namespace penstock::ops
