#pragma once

// What characters of ASCII are, whatever the locale says: names of formats, URLs and Python's literals are made of
// them.

#include <string>
#include <string_view>

namespace penstock::core {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_letter_or_digit(char c) noexcept { return is_letter(c) || is_digit(c); }
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

/// The value of a hexadecimal digit, -1 for what is none.
constexpr int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char letter = lower(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace penstock::core
