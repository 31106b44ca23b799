#include "cli/name_patterns.h"

#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

bool matches_above(const std::string& pattern, std::string_view name) {
  for (std::size_t end = name.find('.'); end != name.npos; end = name.find('.', end + 1)) {
    if (data::matches(pattern, name.substr(0, end))) return true;
  }
  return data::matches(pattern, name);
}

}  // namespace

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
