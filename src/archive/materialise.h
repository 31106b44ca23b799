#pragma once

#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::archive {

/// The alignment that elements of `dtype` want in memory.
std::size_t natural_alignment(const DType& dtype) noexcept;

// Makes values of bytes that are in memory, where these are not the same.

/// Makes the elements of a contiguous tensor, which are encoded in this way, values in place.
void decode(const Encoding& encoding, const Tensor& tensor);

/// A tensor of its own memory with the values of `view`, whose elements are encoded in this way and whose address need
/// not be aligned. Contiguous in C order but for dimensions of stride 0, which stay so. kLimit when overlapping views
/// would take far more memory than what they are views of.
Tensor own_copy(const Tensor& view, const Encoding& encoding);

}  // namespace penstock::archive
