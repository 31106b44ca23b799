#pragma once

// The count of rows in a header that is there already, whoever wrote it.

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::format {

/// The most rows that the header's text has room for, where it keeps its length. `header` is a whole header that
/// parse_npy_header has accepted, of an array that has dimensions.
std::int64_t npy_row_limit(std::string_view header);
/// The same header, of the same length, with another count in front of the shape. kLimit beyond npy_row_limit.
std::string with_npy_rows(std::string_view header, std::int64_t rows, std::string_view path);

}  // namespace penstock::format
