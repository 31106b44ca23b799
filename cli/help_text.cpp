// The help is written in lines of any length, and then each of them is broken where the terminal ends.

#include "cli/help_text.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string_view>

#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

/// The column in which the text of options begins.
constexpr std::size_t kTextColumn = 30;
/// Text that is narrower than this stands below the option, not beside it.
constexpr std::size_t kLeastText = 24;

/// Where the line goes on when it is broken.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
  const std::size_t first = line.find_first_not_of(' ');
  const bool is_option = first == 2 && line.size() > kTextColumn && line[kTextColumn - 1] == ' ';
  const std::size_t indent = is_option ? kTextColumn : first;
  return indent + kLeastText > columns ? std::min<std::size_t>(first, 4) : indent;
}

std::string broken(std::string_view line, std::size_t columns) {
  if (line.size() <= columns) return std::string(line);
  const std::string indent(hanging_indent(line, columns), ' ');
  std::string out;
  while (line.size() > columns - (out.empty() ? 0 : indent.size())) {
    const std::size_t room = columns - (out.empty() ? 0 : indent.size());
    std::size_t space = line.substr(0, room + 1).rfind(' ');
    // A word longer than the line stays whole.
    if (space == line.npos || space <= line.find_first_not_of(' ')) {
      space = line.find(' ', std::min(line.size(), line.find_first_not_of(' ')));
    }
    if (space == line.npos) break;
    std::string_view part = line.substr(0, space);
    part.remove_suffix(part.size() - 1 - part.find_last_not_of(' '));
    out += (out.empty() ? "" : indent) + std::string(part) + "\n";
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ', space)));
  }
  return out + (out.empty() ? "" : indent) + std::string(line);
}

std::string in_columns(const std::string& help) {
  const std::size_t columns = terminal_columns(stdout);
  std::istringstream lines(help);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    // An example is a line for the shell.
    const bool is_example = line.starts_with("  penstock ") || line.starts_with("  source ");
    out += (is_example ? line : broken(line, columns)) + "\n";
  }
  return out;
}

/// Two columns; where the first is too long, its text stands below it.
void append_row(std::string& out, std::string_view left, std::string_view text) {
  const std::size_t room = kTextColumn - 2;
  core::append(out, "  {:<{}}", left, text.empty() ? 0 : room);
  if (!text.empty() && left.size() >= room) core::append(out, "\n{:{}}", "", kTextColumn);
  core::append(out, "{}\n", text);
}

/// What an option is called and takes: --exclude NAME ..., --workers N|auto=auto.
std::string left_column(const Arguments& arguments, const Option& option) {
  std::string out = core::format("{}", fmt::join(option.names, ","));
  if (!option.type_name.empty() && option.type_name != out) out += " " + option.type_name;
  if (!option.default_text.empty()) out += "=" + option.default_text;
  if (option.takes_many()) out += " ...";
  if (option.is_required) out += " REQUIRED";
  for (const Option& other : arguments.options) {
    // Either may be declared as what excludes the other.
    const bool excludes = !option.excluded.empty() && arguments.find(option.excluded) == &other;
    const bool is_excluded = !other.excluded.empty() && arguments.find(other.excluded) == &option;
    if (excludes || is_excluded) out += " Excludes: " + other.names.back();
  }
  return out;
}

void append_options(std::string& out, std::string_view title, const Arguments& arguments, bool positionals) {
  std::string rows;
  for (const Option& option : arguments.options) {
    if (option.is_positional() == positionals) append_row(rows, left_column(arguments, option), option.description);
  }
  if (!rows.empty()) core::append(out, "\n{}:\n{}", title, rows);
}

/// PATH..., or [PATTERN] where it may be left out.
std::string in_usage(const Option& positional) {
  const std::string name = positional.names[0] + (positional.takes_many() ? "..." : "");
  return positional.is_required ? name : core::format("[{}]", name);
}

}  // namespace

std::string program_help(std::string_view description, const Arguments& arguments) {
  std::string out = core::format("{}\nUsage: penstock [OPTIONS] SUBCOMMAND\n", description);
  append_options(out, "Options", arguments, false);
  out += "\nSubcommands:\n";
  for (const Command& command : commands()) append_row(out, command.name, command.summary);
  return in_columns(out);
}

std::string command_help(const Command& command, const Arguments& arguments) {
  std::string out = core::format("{}\nUsage: penstock {} [OPTIONS]", command.summary, command.name);
  for (const Option& option : arguments.options) {
    if (option.is_positional()) out += " " + in_usage(option);
  }
  out += "\n";
  append_options(out, "Positionals", arguments, true);
  append_options(out, "Options", arguments, false);
  if (!command.description.empty()) core::append(out, "\n{}\n", command.description);
  core::append(out, "\nExamples:\n  {}\n", fmt::join(command.examples, "\n  "));
  return in_columns(out);
}

}  // namespace penstock::cli
