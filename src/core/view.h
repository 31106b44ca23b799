#pragma once

// Geometry of strided views, of memory and of files alike: shape and strides in elements, no strides below 0.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/shape.h"

namespace penstock::core {

/// The dimension that `dim` names, negative ones counted from the end; kIndexOutOfRange.
std::size_t dim_of(std::int64_t dim, const Shape& shape);
/// Removes dimension `dim` at `index`, or keeps of it start, start + step, ... below stop; the rules of Tensor::select
/// and Tensor::slice. Returns by how many elements the first one moves. kIndexOutOfRange, kInvalidArgument.
std::int64_t select_view(Shape& shape, Strides& strides, std::int64_t dim, std::int64_t index);
std::int64_t slice_view(Shape& shape, Strides& strides, std::int64_t dim, std::int64_t start, std::int64_t stop,
                        std::int64_t step);

/// Elements of memory from the first to the last one, both counted: 0 when there are none, nothing when that does not
/// fit in 63 bits.
std::optional<std::int64_t> view_extent(const Shape& shape, const Strides& strides) noexcept;
/// The same in bytes, of elements of `itemsize`: what the view spans.
std::optional<std::uint64_t> view_span(const Shape& shape, const Strides& strides, std::size_t itemsize) noexcept;
/// Whether the elements are the numbers 0, 1, 2, ... in C order.
bool is_c_order(const Shape& shape, const Strides& strides) noexcept;
/// Whether they are that in Fortran order, the first dimension fastest, and not in C order as well.
bool is_fortran_order(const Shape& shape, const Strides& strides) noexcept;

}  // namespace penstock::core
