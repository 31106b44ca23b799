#pragma once

#include <cstddef>
#include <string>

#include "penstock/dtype.h"

namespace penstock::ops {

/// The first of `count` elements whose value `to` has no number for, or `count`: an integer outside its range, a NaN or
/// an infinity where `to` is an integer, a finite number that becomes infinite. Numeric types; those that are complex
/// are asked by both of their parts.
std::size_t find_overflow(DType::Code from, const std::byte* elements, DType::Code to, std::size_t count);

/// An element as a double; of a complex number its real part.
double first_part(DType::Code type, const std::byte* element) noexcept;

/// What to tell the user of a value that was found.
std::string overflow_message(DType::Code from, double value, DType::Code to);

}  // namespace penstock::ops
