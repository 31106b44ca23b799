#pragma once

// What lies around a sample's elements in a slot that is larger than the sample.

#include <array>
#include <cstddef>
#include <cstdint>

#include "penstock/collate.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock::data {

/// How a slot is filled behind a sample's own elements.
struct Padding {
  Shape slot = {};  ///< shape of the slot, which differs from the sample's along padded dimensions
  PadMode mode = PadMode::kConstant;
  std::array<std::byte, 16> value{};  ///< kConstant: one element, when it has up to 16 bytes; larger ones are zero
};

/// `value` as the bytes of one element. kDTypeMismatch when the type cannot hold it exactly enough: no fraction or
/// overflow in an integer, 0 or 1 in a bool, only 0 in text and the like.
std::array<std::byte, 16> element_bytes(double value, const DType& dtype);

/// What of a tensor of this shape finds room in the slot.
Shape own_shape(const Padding& padding, const Shape& shape);

/// Fills what lies beyond `own` along each dimension of a contiguous slot, whose elements inside `own` are in place.
/// Nowhere is own larger than the slot; where it is smaller, kReflect needs 2 elements and kReplicate 1.
void fill_padding(const Padding& padding, const Shape& own, std::size_t itemsize, std::byte* slot);

/// The number of places along the dimensions of `own` before `dim`, and where the n-th of them lies in a contiguous
/// block of shape `slot`, of which one step along `dim` takes `step` bytes.
std::uint64_t outer_places(const Shape& own, std::size_t dim);
std::uint64_t outer_offset(const Shape& own, const Shape& slot, std::size_t dim, std::uint64_t step, std::uint64_t n);

}  // namespace penstock::data
