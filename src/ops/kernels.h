#pragma once

// The operations that loading itself is made of: copy, cast, byte swap, negate, fill. The host's are loops, a device's
// are launched (launcher.h).

#include <cstddef>
#include <span>

#include "penstock/tensor.h"

namespace penstock::ops {

/// Copies every element of `from` into `to`: same dtype, shape and device, any strides, no overlap.
/// kShapeMismatch, kDTypeMismatch, kDeviceMismatch. Contiguous runs are copied as wholes.
void copy(const Tensor& from, const Tensor& to);
/// Converts every element of `from` into `to`: same shape and device, both numeric. Rules as in Tensor::to(DType).
/// `strict`, on the host: kInvalidArgument for a value that the type has no number for (overflow.h); part of `to` is
/// written then.
void cast(const Tensor& from, const Tensor& to, bool strict = false);
/// Reverses the bytes of each `width`-wide unit in place. bytes.size() must be a multiple of width.
void swap_bytes(std::span<std::byte> bytes, std::size_t width);
/// Negates every element (a complex number's both parts), in place; conj flips the imaginary part's sign.
void negate(const Tensor& tensor);
void conjugate(const Tensor& tensor);
/// Writes `value` (itemsize() bytes) into every element.
void fill(const Tensor& to, std::span<const std::byte> value);

}  // namespace penstock::ops
