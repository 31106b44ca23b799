// CLI11 lays out the help in lines of any length. Each of them is broken here, and goes on below the place where its
// text begins: behind the two columns of an option, or at the line's own indentation.

#include "cli/help.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

/// Where the text of options begins.
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

Json json_of(const CLI::Option& option) {
  Json names = Json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  Json out{{"names", std::move(names)}, {"description", option.get_description()}};
  if (option.get_positional() || takes_value(option)) out["value"] = option.get_type_name();
  if (const std::vector<std::string> words = words_of(option); !words.empty()) out["words"] = words;
  if (!option.get_default_str().empty()) out["default"] = option.get_default_str();
  return out;
}

/// What --help says of a command, for programs that build upon it.
Json json_of(const CLI::App& sub, const Command& command) {
  Json out{{"name", command.name}, {"summary", command.summary}, {"description", command.description}};
  out["options"] = Json::array();
  for (const CLI::Option* option : sub.get_options()) out["options"].push_back(json_of(*option));
  out["examples"] = command.examples;
  return out;
}

void print_help_json(CLI::App& app, const std::string& name) {
  Json all = Json::array();
  for (const Command& command : commands()) {
    if (name.empty() || command.name == name) {
      all.push_back(json_of(*app.get_subcommand(std::string(command.name)), command));
    }
  }
  print_json(name.empty() ? all : all.front());
}

std::function<int()> attach(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  CLI::Option& option = *app.add_option("command", *name, "The command; without it, all are listed");
  take_word(option, names);
  option.type_name(std::string(kCommandWord));  // a manual page cannot break the list of them
  app.add_flag("--json", *as_json, "Print JSON: the command with its options; without a command, a list of all");
  return [name, as_json] {
    CommandLine line;
    if (*as_json) {
      print_help_json(line.app, *name);
    } else {
      core::print("{}", name->empty() ? line.app.help() : line.app.get_subcommand(*name)->help("penstock"));
    }
    return 0;
  };
}

}  // namespace

HelpFormatter::HelpFormatter() : columns_(terminal_columns(stdout)) { column_width(kTextColumn); }

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::istringstream lines(CLI::Formatter::make_help(app, std::move(name), mode));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    // An example is a line for the shell.
    const bool is_example = line.starts_with("  penstock ") || line.starts_with("  source ");
    out += (is_example ? line : broken(line, columns_)) + "\n";
  }
  return out;
}

std::string footer_of(const Command& command) {
  std::string out(command.description);
  out += out.empty() ? "Examples:" : "\n\nExamples:";
  for (const std::string_view example : command.examples) out += core::format("\n  {}", example);
  return out;
}

const Command kHelp{"help",
                    "Print how the program or one of its commands is used",
                    "The same as --help behind the command.",
                    {"penstock help", "penstock help convert", "penstock help --json"},
                    attach};

}  // namespace penstock::cli
