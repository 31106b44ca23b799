#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "penstock/collate.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock::data {

/// How one dimension of a slot is filled behind a sample's own elements.
struct Padding {
  std::size_t dim = 0;
  std::int64_t length = 0;  ///< of the slot along `dim`
  PadMode mode = PadMode::kConstant;
  std::array<std::byte, 16> value{};  ///< kConstant: one element, when it has up to 16 bytes; larger ones are zero
};

/// `value` as the bytes of one element. kDTypeMismatch when the type cannot hold it exactly enough: no fraction or
/// overflow in an integer, 0 or 1 in a bool, only 0 in text and the like.
std::array<std::byte, 16> element_bytes(double value, const DType& dtype);

/// Fills the elements [own, padding.length) of dimension `dim` in a contiguous slot, whose elements before are in
/// place. `shape` is the sample's; own <= length; kReflect needs own >= 2 and kReplicate own >= 1 where own < length.
void fill_padding(const Padding& padding, const Shape& shape, std::int64_t own, std::size_t itemsize, std::byte* slot);

}  // namespace penstock::data
