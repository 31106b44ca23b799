#include "data/files/path_name.h"

#include "io/locations.h"

namespace penstock::data {

std::string_view without_extension(std::string_view path) noexcept {
  const std::size_t name = path.rfind('/') + 1;  // 0 where there is no '/'
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos || dot <= name ? path : path.substr(0, dot);
}

PathName::PathName(std::string_view path) noexcept {
  const std::size_t end = io::query_begin(path);
  query = path.substr(end);
  path = path.substr(0, end);
  const std::size_t begin = path.rfind('/') + 1;
  folder = path.substr(0, begin);
  name = path.substr(begin);
}

std::string_view PathName::stem() const noexcept { return without_extension(name); }

std::string_view PathName::extension() const noexcept {
  const std::size_t length = stem().size();
  return length == name.size() ? std::string_view{} : name.substr(length + 1);
}

}  // namespace penstock::data
