#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

// What an option takes, said in its type name, which help, manual page and completion show: N, FILE, stack|pad|ragged.
// Between bars, what is in lower case is a word to be typed, and what is in capitals stands for one.

/// The option takes one of `words`; its type name becomes their list.
void take_word(CLI::Option& option, const std::vector<std::string>& words);

/// The option takes a whole number in decimal digits, from `least` to `most`; anything else is wrong usage.
void take_number(CLI::Option& option, std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// As take_number, or "auto", which becomes `automatic`.
void take_number_or_auto(CLI::Option& option, std::int64_t least, std::int64_t most, const std::string& automatic);

/// The option takes a size in bytes, as a number with kB, MB, GB or TB (powers of 1000), KiB, MiB, GiB or TiB behind it
/// or none; at least 1.
void take_bytes(CLI::Option& option);

/// The option takes what `check` has nothing to say about; it gives what was expected.
void take_checked(CLI::Option& option, const std::string& type_name,
                  const std::function<std::string(const std::string&)>& check);

/// --exclude NAME, which may be given again: FilesOptions::exclude.
void take_excluded(CLI::App& app, std::vector<std::string>& exclude);

/// PATH|NAME..., --only PATTERN, which may be given again, and --exclude: what files_and_names and choose_files take.
void take_files_and_names(CLI::App& app, std::vector<std::string>& words, std::vector<std::string>& only,
                          std::vector<std::string>& exclude);

/// The type name of an option that takes the name of a command.
inline constexpr std::string_view kCommandWord = "COMMAND";

/// The words that an option's type name lists.
std::vector<std::string> words_of(const CLI::Option& option);

bool takes_value(const CLI::Option& option);

}  // namespace penstock::cli
