#pragma once

#include <string>
#include <string_view>

namespace penstock::data {

/// Names that are each followed by NUL, in bytewise order and without repeats.
std::string sorted_names(std::string_view names);

}  // namespace penstock::data
