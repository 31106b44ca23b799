#pragma once

#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::archive {

/// The alignment that elements of `dtype` want in memory.
std::size_t natural_alignment(const DType& dtype) noexcept;

/// What has to be done to the bytes of `entry` before they are its values.
struct Changes {
  bool swap = false;  ///< the other byte order, of a type where that matters
  bool conjugate = false;
  bool negative = false;

  explicit Changes(const TensorEntry& entry) noexcept
      : swap(entry.byte_swapped && entry.dtype.swap_width() > 1),
        conjugate(entry.conjugate),
        negative(entry.negative) {}
  bool any() const noexcept { return swap || conjugate || negative; }
};

/// Changes the elements of a contiguous tensor in place.
void apply(const Changes& changes, const Tensor& tensor);

/// A tensor of its own memory with the values of `view`, whose address need not be aligned, after `changes`. Contiguous
/// in C order but for dimensions of stride 0, which stay so. kLimit when overlapping views would take far more memory
/// than what they are views of.
Tensor own_copy(const Tensor& view, const Changes& changes);

}  // namespace penstock::archive
