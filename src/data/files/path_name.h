#pragma once

#include <string_view>

namespace penstock::data {

/// A path or URL taken apart; views of its text.
struct PathName {
  std::string_view folder;  ///< "" or with '/' at its end
  std::string_view name;    ///< behind the last '/'
  std::string_view query;   ///< of a URL by http, with its '?'

  explicit PathName(std::string_view path) noexcept;
  /// The name without its last extension: "a.b" of "a.b.npy", and all of ".npy".
  std::string_view stem() const noexcept;
  /// That extension, without the dot.
  std::string_view extension() const noexcept;
};

/// Without the last extension of its name; it has no query.
std::string_view without_extension(std::string_view path) noexcept;

}  // namespace penstock::data
