#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/path_name.h"

namespace penstock::data {

/// A path as `fields` derives it from that of another file; penstock/join.h says what is in a template.
class PathTemplate {
 public:
  /// kInvalidArgument for a template without text, with a brace that belongs to no pair, and for a name in braces that
  /// stands for nothing.
  explicit PathTemplate(std::string_view text);

  /// The path for the file at `path`, of which the first `root_size` bytes are the folder that was listed.
  /// kInvalidArgument for a path without a name at its end, and for one that leads out of a URL's host or bucket.
  std::string of(std::string_view path, std::size_t root_size) const;

 private:
  enum class What : std::uint8_t { kText, kStem, kName, kExt, kParent, kRoot, kPath };
  struct Token {
    What what = What::kText;
    std::string text = {};
  };

  static What what_of(std::string_view name, std::string_view whole);
  void add_text(char c);
  void check() const;
  /// All but {root}.
  std::string rest_of(const PathName& file, std::string_view below) const;

  std::string text_;
  std::vector<Token> pieces_;
};

}  // namespace penstock::data
