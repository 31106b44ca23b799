#pragma once

// std::format for GCC 12: fmt's, compiled once. fmt's own functions, used header-only, are compiled anew in each source
// that calls them, which is most of the time that such a source takes.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace penstock::core {

/// At the end of `text`.
void vappend(std::string& text, fmt::string_view pattern, fmt::format_args arguments);
std::string vformat(fmt::string_view pattern, fmt::format_args arguments);
/// @throws std::system_error where the stream takes no more.
void vprint(std::FILE* stream, fmt::string_view pattern, fmt::format_args arguments);

struct Format {
  template <typename... Arguments>
  std::string operator()(fmt::format_string<Arguments...> pattern, Arguments&&... arguments) const {
    return core::vformat(pattern, fmt::make_format_args(arguments...));
  }
};
/// The pattern's rules are fmt's; it is checked against the arguments when it is compiled. This is an object, because a
/// call of a function without its namespace would also mean std::format where an argument is a std::string and a header
/// of the standard library includes <format>, as <chrono> of GCC 13 does.
inline constexpr Format format;

template <typename... Arguments>
void append(std::string& text, fmt::format_string<Arguments...> pattern, Arguments&&... arguments) {
  core::vappend(text, pattern, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void print(std::FILE* stream, fmt::format_string<Arguments...> pattern, Arguments&&... arguments) {
  core::vprint(stream, pattern, fmt::make_format_args(arguments...));
}

template <typename... Arguments>
void print(fmt::format_string<Arguments...> pattern, Arguments&&... arguments) {
  core::vprint(stdout, pattern, fmt::make_format_args(arguments...));
}

}  // namespace penstock::core
