#pragma once

/// Paths of the standard library, without <filesystem>: it takes longer to compile than all of Penstock's own headers,
/// and a program that has a path has included it.

#include <concepts>
#include <string>
#include <string_view>

namespace penstock::detail {

/// std::filesystem::path.
template <class T>
concept FilePath = requires(const T& path) {
  { path.native() } -> std::same_as<const std::string&>;
  { path.parent_path() } -> std::same_as<T>;
};

}  // namespace penstock::detail
