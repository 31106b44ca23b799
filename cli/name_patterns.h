#pragma once

// Names of tensors as words of the command line: --only, and names behind files.

#include <string>
#include <string_view>
#include <vector>

#include "penstock/load.h"

namespace penstock::cli {

/// The name of a tensor or value, or of what lies above one, that `printable` shows as this word; the word itself where
/// there is none. So a name may be given as it was printed.
std::string name_meant(const Archive& archive, const std::string& word);

/// Patterns of names of tensors and values, which are keys joined with dots. A pattern stands for what lies below a
/// name that it matches, too; `*` and `?` stand for any characters, dots as well. Remembers which of them have matched.
class NamePatterns {
 public:
  explicit NamePatterns(std::vector<std::string> patterns);

  /// Whether one of them matches the name, or what it is below.
  bool match(std::string_view name);
  bool empty() const noexcept { return patterns_.empty(); }

  /// kKeyNotFound for a pattern that has matched nothing; `names` are those that it says could have been meant.
  void require_used(const std::vector<std::string>& names) const;

 private:
  std::vector<std::string> patterns_;
  std::vector<bool> used_;
};

}  // namespace penstock::cli
