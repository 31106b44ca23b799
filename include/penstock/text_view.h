#pragma once

/// Parameters that are text: paths and URLs, names and keys. A std::string_view takes a null pointer and reads what is
/// there; std::getenv gives one for a variable that is not set.

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include "penstock/standard.h"

namespace penstock {

namespace detail {
/// std::filesystem::path, without <filesystem>: it takes longer to compile than all of Penstock's own headers, and a
/// program that has a path has included it.
template <class T>
concept FilePath = requires(const T& path) {
  { path.native() } -> std::same_as<const std::string&>;
  { path.parent_path() } -> std::same_as<T>;
};
[[noreturn]] void throw_null_text();
}  // namespace detail

/// A parameter of type std::string_view, which takes whatever converts to that, and a std::filesystem::path. It refuses
/// a null pointer by kInvalidArgument, and does not compile with nullptr or 0.
class TextView {
 public:
  /// Empty.
  constexpr TextView() noexcept = default;
  // NOLINTBEGIN(google-explicit-constructor): it stands for a text
  template <class T>
  requires(detail::FilePath<T> || std::convertible_to<const T&, std::string_view>) TextView(const T& text)
      : text_(view_of(text)) {}
  TextView(std::nullptr_t) = delete;
  constexpr operator std::string_view() const noexcept { return text_; }
  // NOLINTEND(google-explicit-constructor)

 private:
  template <class T>
  static std::string_view view_of(const T& text) {
    if constexpr (detail::FilePath<T>) {
      return text.native();
    } else if constexpr (std::convertible_to<const T&, const char*>) {
      const char* const characters = text;
      if (characters == nullptr) detail::throw_null_text();
      return characters;
    } else {
      return text;
    }
  }

  std::string_view text_;
};

}  // namespace penstock
