#pragma once

// Blocks of elements as double: what statistics and differences compute with.

#include <array>
#include <cstddef>

#include "penstock/dtype.h"

namespace penstock::archive {

/// Numbers that are looked at together: few enough for the first-level cache.
inline constexpr std::size_t kBlock = 512;

/// Whether double holds every value: all numeric types but complex ones and integers of 64 bits.
bool fits_double(const DType& dtype) noexcept;

/// The same of float: floats but float64, bool, and integers of up to 16 bits.
bool fits_float(const DType& dtype) noexcept;

/// A block of elements of a type that fits float, as float: where they lie, or in `room`. It may not be aligned.
const std::byte* as_floats(const DType& dtype, const std::byte* from, std::array<float, kBlock>& room);

/// `count` real elements as double; integers of 64 bits are rounded.
void to_doubles(const DType& dtype, const std::byte* from, double* to, std::size_t count);

/// `count` complex elements as their real and imaginary parts.
void to_complex(const DType& dtype, const std::byte* from, double* real, double* imaginary, std::size_t count);

}  // namespace penstock::archive
