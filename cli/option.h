#pragma once

// What commands take, as data: each attaches its options to Arguments, and command_line.cpp makes a parser of all.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace penstock::cli {

// What commands take, as they describe it: help, completion and the manual page read this description, and
// command_line.cpp alone parses by it, since the header of CLI11 takes seconds to compile.

/// Where the value of an option goes; it has to live as long as the option. Flags are those of bool and of a function
/// without an argument, which is called where the flag is given. Without a target the parser answers: --help,
/// --version.
using Target = std::variant<std::monostate, bool*, std::function<void()>, std::string*, std::optional<std::string>*,
                            std::vector<std::string>*, std::int64_t*, std::optional<std::int64_t>*, std::size_t*,
                            std::function<void(const std::string&)>>;

/// The words are wrong usage, which the text explains: "--trace: is a file where --html draws it".
struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option, a flag or a positional. A list takes many words as a positional, else one each time it is given.
struct Option {
  std::vector<std::string> names;  ///< -o, --output; a positional has one name, in capitals, which CLI11 from 2.4 on
                                   ///< would else take for an option (`to` for `--to`)
  Target target;
  std::string description;
  /// What it takes, which help, manual page and completion show: N, FILE, stack|pad|ragged. Between bars, what is in
  /// lower case is a word to be typed, and what is in capitals stands for one. Empty for a flag.
  std::string type_name = {};
  std::vector<std::string> words = {};  ///< those that its type name lists
  std::string default_text = {};        ///< what is shown as its default
  std::string excluded = {};            ///< an option that cannot stand beside it
  /// May change the text; gives what was expected when it does not take it.
  std::function<std::string(std::string&)> check = {};
  bool is_required = false;
  bool is_given = false;  ///< set by parsing

  bool is_positional() const { return names.front().front() != '-'; }
  bool takes_value() const { return target.index() > 2; }
  bool takes_many() const { return std::holds_alternative<std::vector<std::string>*>(target); }
  /// Whether its words are locations: paths or URLs.
  bool takes_location() const;
  /// With their hyphens: --part, --key.
  std::vector<std::string> long_names() const;

  Option& required();
  Option& shows_default(std::string text);
  Option& excludes(std::string name);

  /// Anything, of which `type` is the type name.
  Option& takes(std::string type);
  /// One of `known`; their list becomes the type name.
  Option& takes_word(const std::vector<std::string>& known);
  /// A whole number in decimal digits, from `least` to `most`; anything else is wrong usage.
  Option& takes_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
  /// As takes_number, or "auto", which becomes `automatic`.
  Option& takes_number_or_auto(std::int64_t least, std::int64_t most, const std::string& automatic);
  /// A size in bytes, as a number with kB, MB, GB or TB (powers of 1000), KiB, MiB, GiB or TiB behind it or none; at
  /// least 1.
  Option& takes_bytes();
  /// What `expected` gives nothing for; else it gives what was expected.
  Option& takes_checked(std::string type, std::function<std::string(const std::string&)> expected);
};

/// What a command takes.
struct Arguments {
  std::deque<Option> options;  ///< in the order of the help; those that are added stay where they are
  /// Called when all of the command's words have been taken: throws WrongUsage where they contradict each other.
  std::function<void(const Arguments&)> refuse = {};

  /// With -h and --help.
  Arguments();

  /// `names` are divided by commas.
  Option& add(std::string_view names, Target target, std::string description);
  /// Null where no option has this name.
  const Option* find(std::string_view name) const;
  /// Whether the words had this option.
  bool has(std::string_view name) const;
};

/// --exclude NAME, which may be given again: FilesOptions::exclude.
void take_excluded(Arguments& arguments, std::vector<std::string>& exclude);

/// PATH|NAME..., --only PATTERN, which may be given again, and --exclude: what files_and_names and choose_files take.
void take_files_and_names(Arguments& arguments, std::vector<std::string>& words, std::vector<std::string>& only,
                          std::vector<std::string>& exclude);

}  // namespace penstock::cli
