#include "data/scan/exclusion.h"

#include <algorithm>
#include <optional>

#include "core/text.h"
#include "data/scan/name_match.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// The last component of a path, which is cut off; nothing where there is none.
std::optional<std::string_view> take_last(std::string_view& path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.empty()) return std::nullopt;
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view name = path.substr(begin);
  path = path.substr(0, begin);
  return name;
}

}  // namespace

Exclusion::Exclusion(const std::vector<std::string>& patterns) {
  for (const std::string& text : patterns) {
    Pattern pattern{{}, text.starts_with('/')};
    std::string_view rest = text;
    while (const auto name = take_last(rest)) {
      if (*name != ".") pattern.components.emplace_back(*name);
    }
    if (pattern.components.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::quoted(text) + " leaves nothing out: exclude takes names such as 'lost+found' or 'old/raw*'");
    }
    patterns_.push_back(std::move(pattern));
  }
}

bool Exclusion::leaves_out(const std::string& folder, std::string_view name) const {
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    std::string_view rest = folder;
    std::optional<std::string_view> here = name;
    for (const std::string& component : pattern.components) {
      if (!here || !matches(component, *here)) return false;
      here = take_last(rest);
    }
    return !pattern.whole || !here;
  });
}

}  // namespace penstock::data
