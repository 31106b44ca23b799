#pragma once

// Text that should be a number and nothing else: a setting, a field of a header, a word of the command line.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace penstock::core {

/// The decimal number that all of `text` is, with at most a minus before it; nothing for any other text, and for a
/// number that does not fit.
template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number out{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, out);
  return error == std::errc() && end == last ? std::optional(out) : std::nullopt;
}

}  // namespace penstock::core
