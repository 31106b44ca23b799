#include "cli/name_patterns.h"

#include <utility>

#include "archive/inspect/leaves.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

/// A pattern that is the name itself matches, whatever it means as a pattern: "a[0]", and "a\\nb" as it is printed.
bool matches_name(const std::string& pattern, std::string_view name) {
  return pattern == name || data::matches(pattern, name) ||
         (pattern.find('\\') != pattern.npos && pattern == printable(name));
}

bool matches_above(const std::string& pattern, std::string_view name) {
  for (std::size_t end = name.find('.'); end != name.npos; end = name.find('.', end + 1)) {
    if (matches_name(pattern, name.substr(0, end))) return true;
  }
  return matches_name(pattern, name);
}

}  // namespace

std::string name_meant(const Archive& archive, const std::string& word) {
  if (word.find('\\') == word.npos) return word;
  for (const std::string& path : archive::paths_in(archive.structure(), {})) {
    for (std::size_t end = path.find('.'); end != path.npos; end = path.find('.', end + 1)) {
      if (printable(path.substr(0, end)) == word) return path.substr(0, end);
    }
    if (printable(path) == word) return path;
  }
  return word;
}

NamePatterns::NamePatterns(std::vector<std::string> patterns)
    : patterns_(std::move(patterns)), used_(patterns_.size()) {}

bool NamePatterns::match(std::string_view name) {
  bool any = false;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!matches_above(patterns_[i], name)) continue;
    any = used_[i] = true;
  }
  return any;
}

void NamePatterns::require_used(const std::vector<std::string>& names) const {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (used_[i]) continue;
    const std::string meant = core::did_you_mean(core::nearest_names(patterns_[i], names));
    throw Error(ErrorCode::kKeyNotFound, core::format("no name matches {}{}{}", core::quoted(patterns_[i]),
                                                      meant.empty() ? "; penstock ls shows the names" : "; ", meant));
  }
}

}  // namespace penstock::cli
