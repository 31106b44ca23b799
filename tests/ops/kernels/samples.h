#pragma once

// Tensors that kernels are tried on.

#include <cstddef>
#include <cstdint>

#include "penstock/tensor.h"

namespace penstock::test {

/// The ends of the types' ranges, what is beside them, and what rounds to even: where conversions and comparisons turn.
Tensor edges(const DType& dtype);

/// Numbers about zero; every third element random bits, of every size and sign that the type has; and every fifth one
/// an edge, the same one at the same place whatever the type, so that pairs of samples have equal elements too.
Tensor sample(const Shape& shape, const DType& dtype, std::uint64_t seed);

/// All values of types of one byte, and every 13th bit pattern of those of two; random bits of wider ones.
Tensor patterns(const DType& dtype);

/// A sample in `rank` dimensions that cannot be joined to fewer: each has a gap behind it.
Tensor with_gaps(const DType& dtype, std::size_t rank, std::uint64_t seed);

/// Equal but for the bits of NaNs, which processors choose. Zeros of different sign are not equal.
bool same(const Tensor& a, const Tensor& b);

}  // namespace penstock::test
