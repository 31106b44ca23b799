#pragma once

// UTF-8 as the standard has it, for names and text out of files, which may be anything.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::core {

/// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) noexcept;
/// The same, or with surrogates written as if they were characters, as Python's "surrogatepass" does.
bool is_utf8_with_surrogates(std::string_view text) noexcept;

/// The first character of a text, and its bytes: none where it is not well-formed. A surrogate counts, as
/// `is_utf8_with_surrogates` has it.
struct FirstCodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;

  bool is_surrogate() const noexcept { return value >= 0xD800 && value <= 0xDFFF; }
};
FirstCodePoint first_code_point(std::string_view text) noexcept;

/// Takes the first character off `utf8`, which is not empty; nothing, and nothing is taken, where it is not
/// well-formed.
std::optional<char32_t> take_code_point(std::string_view& utf8) noexcept;
/// Appends the UTF-8 form of `code_point`, which is at most 0x10FFFF; a surrogate as `is_utf8_with_surrogates` has it.
void append_utf8(std::string& text, char32_t code_point);

}  // namespace penstock::core
