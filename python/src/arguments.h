#pragma once

// Arguments of Python calls whose errors say which one it was.

#include <nanobind/nanobind.h>

#include <cstdint>

namespace nb = nanobind;

namespace penstock::python {

/// A whole number, as anything with __index__. kDTypeMismatch for what is none, kInvalidArgument beyond 64 bits.
std::int64_t integer_argument(nb::handle value, const char* name);
/// The same, which must not be negative.
std::uint64_t count_argument(nb::handle value, const char* name);
/// A number with a fraction, as anything with __float__ or __index__. kDTypeMismatch for what is none.
double number_argument(nb::handle value, const char* name);
/// True or False, also NumPy's and as 0 and 1. kDTypeMismatch for what is neither.
bool flag_argument(nb::handle value, const char* name);

}  // namespace penstock::python
