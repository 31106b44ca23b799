#pragma once

// `penstock convert --rename`.

#include <cstddef>
#include <regex>
#include <string>

namespace penstock::cli {

/// s/REGEX/TEXT/, as sed has it, over the characters of names. The regular expression is one of ECMAScript.
class Renaming {
 public:
  /// Throws std::regex_error for a wrong regular expression, and std::invalid_argument with what was expected for what
  /// has another form.
  explicit Renaming(const std::string& text);

  /// The new name. kLimit for a name of more than 4096 bytes.
  std::string operator()(const std::string& name);

  /// Told and no error, because one renaming may be meant for many files, of which some have such names.
  void tell_unused() const;

 private:
  std::string given_;
  std::wregex regex_;
  std::wstring text_;
  std::size_t first_ = 1;  ///< the number of the match that is replaced
  bool global_ = false;    ///< and those behind it
  bool changes_any_ = false;
};

/// Nothing, or what was expected in place of `text`.
std::string check_rename(const std::string& text);

}  // namespace penstock::cli
