#pragma once

// Text of files as UTF-8.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace penstock::format {

using core::append_utf8;
using core::is_utf8;
using core::is_utf8_with_surrogates;

/// Text of code page 437, that of the first PCs, as UTF-8. ASCII stays as it is.
std::string from_cp437(std::string_view bytes);

/// The code points of UTF-8 text as one byte each, if all are below 256. `to` has room for text.size(); gives the
/// count.
std::optional<std::size_t> to_latin1(std::string_view text, char* to) noexcept;
/// Bytes as the UTF-8 text with the same code points.
std::string from_latin1(std::string_view bytes);

}  // namespace penstock::format
