#pragma once

#include <string>
#include <string_view>

namespace penstock::format {

/// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) noexcept;
/// The same, or with surrogates written as if they were characters, as Python's "surrogatepass" does.
bool is_utf8_with_surrogates(std::string_view text) noexcept;

/// Text of code page 437, that of the first PCs, as UTF-8. ASCII stays as it is.
std::string from_cp437(std::string_view bytes);

/// Appends the UTF-8 form of `code_point`, which is at most 0x10FFFF; a surrogate as `is_utf8_with_surrogates` has it.
void append_utf8(std::string& text, char32_t code_point);

}  // namespace penstock::format
