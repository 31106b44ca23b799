#include "data/files/name_sort.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace penstock::data {

namespace {

struct Name {
  std::uint64_t key;  ///< the eight bytes behind what all names begin with, so that few strings are compared
  const char* text;
};

}  // namespace

std::string sorted_names(std::string_view names) {
  std::vector<Name> order;
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) order.push_back({0, &names[at]});
  if (order.empty()) return {};
  std::size_t common = std::strlen(order.front().text);
  for (const Name& name : order) {
    std::size_t same = 0;
    while (same < common && name.text[same] == order.front().text[same]) ++same;
    common = same;
  }
  for (Name& name : order) {
    for (std::size_t i = 0; i < sizeof(name.key) && name.text[common + i] != '\0'; ++i) {
      name.key |= std::uint64_t{static_cast<unsigned char>(name.text[common + i])} << (56 - 8 * i);
    }
  }
  const auto less = [common](const Name& a, const Name& b) {
    return a.key != b.key ? a.key < b.key : std::strcmp(a.text + common, b.text + common) < 0;
  };
  std::sort(order.begin(), order.end(), less);
  std::string out;
  out.reserve(names.size());
  const char* last = nullptr;
  for (const Name& name : order) {
    if (last != nullptr && std::strcmp(last, name.text) == 0) continue;
    last = name.text;
    out.append(name.text).push_back('\0');
  }
  return out;
}

}  // namespace penstock::data
