#pragma once

// Strict casts: finds values that the new type has no number for.

#include <cstddef>
#include <string>

#include "penstock/dtype.h"

namespace penstock::ops {

/// The first of `count` elements whose value `to` cannot hold, or `count`: an integer outside its range, a NaN or an
/// infinity where `to` is an integer, a finite number that becomes infinite or NaN, an infinity that does not stay one,
/// a negative number where `to` has none, a number beyond the greatest of a type that makes that of it (float8_e4m3fn),
/// and an imaginary part where `to` has no place for it. Rounding is no loss, and neither is the cutting off of a
/// fraction. Both types are numeric.
std::size_t find_overflow(DType::Code from, const std::byte* elements, DType::Code to, std::size_t count);

/// An element as a double; of a complex number its real part.
double first_part(DType::Code type, const std::byte* element) noexcept;

/// What to tell the user of a value that was found.
std::string overflow_message(DType::Code from, double value, DType::Code to);

}  // namespace penstock::ops
