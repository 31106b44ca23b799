#include "cli/option.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <sstream>

#include "cli/command.h"
#include "core/byte_size.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock::cli {
namespace {

std::optional<std::int64_t> number_from(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::string range_text(std::int64_t least, std::int64_t most) {
  return core::format("a whole number from {} to {}", least, most);
}

/// Nothing where the text is such a number; else what was expected. Digits alone are left of the text, because what
/// begins with 0 is octal to CLI11.
std::string check_number(std::string& text, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = number_from(text);
  if (!value || *value < least || *value > most) return range_text(least, most);
  text = std::to_string(*value);
  return {};
}

using Check = std::function<std::string(std::string&)>;

/// `check` may change the text, and gives what was expected when it does not take it.
void take(CLI::Option& option, const std::string& type_name, const Check& check) {
  const auto checked = [check](std::string& text) {
    const std::string given = text;
    const std::string expected = check(text);
    return expected.empty() ? std::string() : core::format("found {}, expected {}", core::quoted(given), expected);
  };
  option.transform(CLI::Validator(checked, ""))->type_name(type_name);
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return core::format("{}", fmt::join(words, separator));
}

}  // namespace

void take_bytes(CLI::Option& option) {
  take(option, "SIZE", [](std::string& text) {
    const std::optional<std::uint64_t> bytes = core::parse_bytes(text);
    if (bytes) text = std::to_string(*bytes);
    return bytes ? std::string() : "a size, such as 5GB, 1.5GB or 500 MiB";
  });
}

void take_checked(CLI::Option& option, const std::string& type_name,
                  const std::function<std::string(const std::string&)>& check) {
  take(option, type_name, check);
}

void take_word(CLI::Option& option, const std::vector<std::string>& words) {
  take(option, joined(words, "|"), [words](const std::string& text) {
    const bool known = std::find(words.begin(), words.end(), text) != words.end();
    if (known) return std::string();
    const std::string meant = core::did_you_mean(core::nearest_names(text, words));
    return core::format("one of {}{}{}", joined(words, ", "), meant.empty() ? "" : "; ", meant);
  });
}

void take_number(CLI::Option& option, std::int64_t least, std::int64_t most) {
  take(option, "N", [=](std::string& text) { return check_number(text, least, most); });
}

void take_number_or_auto(CLI::Option& option, std::int64_t least, std::int64_t most, const std::string& automatic) {
  take(option, "N|auto", [=](std::string& text) {
    if (text == "auto") {
      text = automatic;
      return std::string();
    }
    const std::string expected = check_number(text, least, most);
    return expected.empty() ? expected : expected + " or 'auto'";
  });
}

void take_excluded(CLI::App& app, std::vector<std::string>& exclude) {
  app.add_option("--exclude", exclude,
                 "Leave out folders and files of this name or pattern, or whose path ends so; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void take_files_and_names(CLI::App& app, std::vector<std::string>& words, std::vector<std::string>& only,
                          std::vector<std::string>& exclude) {
  app.add_option("path", words, "Tensor files, folders of them and patterns; then names of tensors")
      ->required()
      ->type_name("PATH|NAME");
  app.add_option("--only", only, "Only tensors of such a name, or below it; may be given again")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  take_excluded(app, exclude);
}

std::vector<std::string> words_of(const CLI::Option& option) {
  std::vector<std::string> words;
  if (option.get_type_name() == kCommandWord) {
    for (const Command& command : commands()) words.emplace_back(command.name);
    return words;
  }
  std::istringstream names(option.get_type_name());
  for (std::string name; std::getline(names, name, '|');) {
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos && !name.empty()) {
      words.push_back(name);
    }
  }
  return words;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

}  // namespace penstock::cli
