#pragma once

// Which type a result has: the rules of torch, as functions of types.

#include "penstock/dtype.h"
#include "penstock/ops.h"

namespace penstock::ops {

/// The type whose arithmetic stands for that of `dtype`: uint8 for bool, float32 for halves and float8, complex64 for
/// complex32, else itself.
DType compute_type(const DType& dtype) noexcept;
/// The real type of a complex one's parts; real types stay.
DType real_type(const DType& dtype) noexcept;
/// Floats and complex stay, others become float32.
DType floating_type(const DType& dtype) noexcept;
/// The type a number takes when nothing else decides: bool, int64, float32, complex64.
DType default_type(const Scalar& number) noexcept;
/// kInvalidArgument when `dtype` is an integer type that does not hold `value`, whose fraction is cut off, or a real
/// one beside an imaginary part.
void require_in_range(const Scalar& value, const DType& dtype);
/// kUnsupported unless the elements of `dtype` have a numeric meaning.
void require_numeric(const DType& dtype, const char* operation);

}  // namespace penstock::ops
