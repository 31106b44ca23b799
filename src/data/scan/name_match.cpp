#include "data/scan/name_match.h"

#include <algorithm>
#include <optional>

namespace penstock::data {

namespace {

/// Matches the set that `pattern` begins with ('[' consumed) and moves behind it; nothing when it is not closed.
std::optional<bool> match_set(std::string_view& pattern, unsigned char c) {
  std::string_view rest = pattern;
  const bool negated = !rest.empty() && (rest[0] == '!' || rest[0] == '^');
  if (negated) rest.remove_prefix(1);
  bool found = false;
  for (bool first = true; !rest.empty(); first = false) {
    if (rest[0] == ']' && !first) {
      pattern = rest.substr(1);
      return found != negated;
    }
    const auto low = static_cast<unsigned char>(rest[0]);
    auto high = low;
    rest.remove_prefix(1);
    if (rest.size() >= 2 && rest[0] == '-' && rest[1] != ']') {
      high = static_cast<unsigned char>(rest[1]);
      rest.remove_prefix(2);
    }
    found |= low <= c && c <= high;
  }
  return std::nullopt;
}

/// Matches one character against what `pattern` begins with, which is not '*', and moves behind it.
bool match_one(std::string_view& pattern, char c) {
  const char p = pattern[0];
  pattern.remove_prefix(1);
  if (p == '?') return true;
  if (p == '[') {
    if (const auto in_set = match_set(pattern, static_cast<unsigned char>(c))) return *in_set;
  }
  return p == c;
}

}  // namespace

bool is_magic(std::string_view component) noexcept {
  return std::any_of(component.begin(), component.end(), [](char c) { return c == '*' || c == '?' || c == '['; });
}

bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!name.empty() && name[0] == '.' && (pattern.empty() || pattern[0] != '.')) return false;
  // After a mismatch only the last '*' can give more: it takes one character more than before.
  std::string_view star_pattern;
  std::string_view star_name;
  bool star = false;
  while (!name.empty()) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      star_pattern = pattern;
      star_name = name;
      star = true;
      // What most patterns end in: as it is plain, it is the name's end or nothing is.
      if (!is_magic(pattern)) return name.ends_with(pattern);
      continue;
    }
    if (!pattern.empty() && match_one(pattern, name[0])) {
      name.remove_prefix(1);
      continue;
    }
    if (!star) return false;
    star_name.remove_prefix(1);
    pattern = star_pattern;
    name = star_name;
  }
  return pattern.find_first_not_of('*') == std::string_view::npos;
}

}  // namespace penstock::data
