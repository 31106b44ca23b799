#include <memory>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/json/json.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

Json json_of(const Option& option) {
  Json out{{"names", option.is_positional() ? Json::array() : Json(option.names)}, {"description", option.description}};
  if (option.takes_value()) out["value"] = option.type_name;
  if (!option.words.empty()) out["words"] = option.words;
  if (!option.default_text.empty()) out["default"] = option.default_text;
  return out;
}

/// What --help says of a command, for programs that build upon it.
Json json_of(const CommandLine::Subcommand& subcommand) {
  const Command& command = *subcommand.command;
  Json out{{"name", command.name}, {"summary", command.summary}, {"description", command.description}};
  out["options"] = Json::array();
  for (const Option& option : subcommand.arguments.options) out["options"].push_back(json_of(option));
  out["examples"] = command.examples;
  return out;
}

void print_help_json(const CommandLine& line, const std::string& name) {
  Json all = Json::array();
  for (const auto& subcommand : line.subcommands) {
    if (name.empty() || subcommand.command->name == name) all.push_back(json_of(subcommand));
  }
  print_json(name.empty() ? all : all.front());
}

std::function<int()> attach_help(Arguments& arguments) {
  auto name = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  Option& option = arguments.add("COMMAND", name.get(), "The command; without it, all are listed").takes_word(names);
  option.type_name = "COMMAND";  // a manual page cannot break the list of them
  arguments.add("--json", as_json.get(), "Print JSON: the command with its options; without a command, a list of all");
  return [name, as_json] {
    CommandLine line;
    if (*as_json) {
      print_help_json(line, *name);
    } else {
      core::print("{}", line.parse(name->empty() ? std::vector<std::string>{"--help"}
                                                 : std::vector<std::string>{*name, "--help"})
                            .text);
    }
    return 0;
  };
}

}  // namespace

const Command kHelp{"help",
                    "Print how the program or one of its commands is used",
                    "The same as --help behind the command.",
                    {"penstock help", "penstock help convert", "penstock help --json"},
                    attach_help};

}  // namespace penstock::cli
