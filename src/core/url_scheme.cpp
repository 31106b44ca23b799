#include "core/url_scheme.h"

#include <vector>

#include "core/format.h"

namespace penstock::core {
namespace {

std::string listed(const std::vector<std::string>& names, std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 < names.size() ? std::string(", ") : format(" {} ", word);
    out += names[i];
  }
  return out;
}

}  // namespace

std::string store_schemes(std::string_view word) {
  std::vector<std::string> names;
  for (const UrlScheme& scheme : kUrlSchemes) {
    if (scheme.is_store && !scheme.has_account) names.push_back(format("{}://", scheme.name));
  }
  return listed(names, word);
}

std::string all_schemes(std::string_view word) {
  std::vector<std::string> names;
  for (const UrlScheme& scheme : kUrlSchemes) {
    if (!scheme.has_account) names.emplace_back(scheme.name);
  }
  return listed(names, word);
}

}  // namespace penstock::core
