#pragma once

#include <string_view>
#include <vector>

#include "archive/inspect/statistics.h"

namespace penstock::cli {

/// What is odd about a tensor, worst first: "nan", "inf"; of those with more than one element "zero" (all of them are)
/// or "constant"; and "denormal": it has any, or, in floats of 16 bits and less with a narrow exponent, where small
/// numbers often are, more than half of its numbers beside 0 are.
std::vector<std::string_view> marks_of(const archive::Statistics& of);

}  // namespace penstock::cli
