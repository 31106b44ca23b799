#pragma once

#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::archive {

/// The alignment that elements of `dtype` want in memory.
std::size_t natural_alignment(const DType& dtype) noexcept;

/// The shape of a view whose elements are there once: 1 in each dimension of stride 0.
Shape once(const Shape& shape, const Strides& strides);
/// The strides of a copy of that, which is to repeat what the view repeats.
Strides repeating(Strides of_copy, const Strides& of_view);

/// The same elements as rows of bytes, which can be copied without alignment.
Tensor as_bytes(const Tensor& tensor);

/// Turns the elements of a contiguous tensor from `encoding` into values, in place.
void decode(const Encoding& encoding, const Tensor& tensor);

/// A copy of `view` with memory of its own. The elements of `view` have `encoding`, and its address need not be
/// aligned. The copy has values, contiguous in C order; dimensions of stride 0 stay so. kLimit when overlapping
/// elements would make the copy far larger than the memory that `view` is a view of.
Tensor own_copy(const Tensor& view, const Encoding& encoding);

}  // namespace penstock::archive
