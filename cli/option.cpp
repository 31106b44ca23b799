#include "cli/option.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/byte_size.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"

namespace penstock::cli {
namespace {

std::string range_text(std::int64_t least, std::int64_t most) {
  return core::format("a whole number from {} to {}", least, most);
}

/// Nothing where the text is such a number; else what was expected. Digits alone are left of the text, because what
/// begins with 0 is octal to CLI11.
std::string check_number(std::string& text, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = core::parse_number<std::int64_t>(text);
  if (!value || *value < least || *value > most) return range_text(least, most);
  text = std::to_string(*value);
  return {};
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return core::format("{}", fmt::join(words, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace

std::vector<std::string> Option::long_names() const {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out),
               [](const std::string& name) { return name.starts_with("--"); });
  return out;
}

bool Option::takes_location() const {
  return type_name == "FILE" || type_name == "PATH" || type_name == "PATH|NAME" || type_name == "FOLDER";
}

Option& Option::required() {
  is_required = true;
  return *this;
}

Option& Option::shows_default(std::string text) {
  default_text = std::move(text);
  return *this;
}

Option& Option::excludes(std::string name) {
  excluded = std::move(name);
  return *this;
}

Option& Option::takes(std::string type) {
  type_name = std::move(type);
  words = split(type_name, '|');
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos;
  });
  return *this;
}

Option& Option::takes_bytes() {
  check = [](std::string& text) {
    const std::optional<std::uint64_t> bytes = core::parse_bytes(text);
    if (bytes) text = std::to_string(*bytes);
    return bytes ? std::string() : "a size, such as 5GB, 1.5GB or 500 MiB";
  };
  return takes("SIZE");
}

Option& Option::takes_checked(std::string type, std::function<std::string(const std::string&)> expected) {
  check = std::move(expected);
  return takes(std::move(type));
}

Option& Option::takes_word(const std::vector<std::string>& known) {
  return takes_checked(joined(known, "|"), [known](const std::string& text) {
    if (std::find(known.begin(), known.end(), text) != known.end()) return std::string();
    const std::string meant = core::did_you_mean(core::nearest_names(text, known));
    return core::format("one of {}{}{}", joined(known, ", "), meant.empty() ? "" : "; ", meant);
  });
}

Option& Option::takes_number(std::int64_t least, std::int64_t most) {
  check = [=](std::string& text) { return check_number(text, least, most); };
  return takes("N");
}

Option& Option::takes_number_or_auto(std::int64_t least, std::int64_t most, const std::string& automatic) {
  check = [=](std::string& text) {
    if (text == "auto") {
      text = automatic;
      return std::string();
    }
    const std::string expected = check_number(text, least, most);
    return expected.empty() ? expected : expected + " or 'auto'";
  };
  return takes("N|auto");
}

Arguments::Arguments() { add("-h,--help", {}, "Print this help message and exit"); }

Option& Arguments::add(std::string_view names, Target target, std::string description) {
  return options.emplace_back(
      Option{.names = split(names, ','), .target = std::move(target), .description = std::move(description)});
}

const Option* Arguments::find(std::string_view name) const {
  const auto found = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  });
  return found == options.end() ? nullptr : &*found;
}

bool Arguments::has(std::string_view name) const {
  const Option* const option = find(name);
  return option != nullptr && option->is_given;
}

void take_excluded(Arguments& arguments, std::vector<std::string>& exclude) {
  arguments
      .add("--exclude", &exclude,
           "Leave out folders and files of this name or pattern, or whose path ends so; may be given again")
      .takes("NAME");
}

void take_files_and_names(Arguments& arguments, std::vector<std::string>& words, std::vector<std::string>& only,
                          std::vector<std::string>& exclude) {
  arguments.add("PATH", &words, "Tensor files, folders of them and patterns; then names of tensors")
      .required()
      .takes("PATH|NAME");
  arguments.add("--only", &only, "Only tensors of such a name, or below it; may be given again").takes("PATTERN");
  take_excluded(arguments, exclude);
}

}  // namespace penstock::cli
