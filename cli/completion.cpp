#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

std::vector<const CLI::App*> subcommands(const CommandLine& line) {
  return line.app.get_subcommands([](const CLI::App*) { return true; });
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

/// "--json --slice" of one sub-command.
std::string flags_of(const CLI::App& app) {
  std::string out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  }
  return out.empty() ? out : out.substr(1);
}

/// Text inside a single-quoted zsh word inside brackets.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += {'\\', c};
    } else {
      out += c;
    }
  }
  return out;
}

void print_bash(const CommandLine& line) {
  std::string names;
  std::string cases;
  for (const CLI::App* sub : subcommands(line)) {
    names += (names.empty() ? "" : " ") + sub->get_name();
    const std::string words = flags_of(*sub) + (sub->get_name() == "completion" ? " bash zsh" : "");
    cases += core::format("    {}) words=\"{}\" ;;\n", sub->get_name(), words);
  }
  core::print(R"(# bash completion for penstock: source it, or install it as share/bash-completion/completions/penstock
_penstock() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words="" command="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command="${{COMP_WORDS[i]}}"; break; }}
  done
  case "$command" in
    "") words="{} --help" ;;
{}  esac
  if [[ -n $command && $current != -* && $command != completion ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}}
complete -o filenames -F _penstock penstock
)",
              names, cases);
}

std::string zsh_arguments(const CLI::App& sub) {
  std::string out;
  for (const CLI::Option* option : sub.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::string value = is_flag(*option) ? "" : core::format(":{}:", zsh_text(option->get_type_name()));
      out += core::format(" \\\n        '--{}[{}]{}'", name, zsh_text(option->get_description()), value);
    }
  }
  return out + (sub.get_name() == "completion" ? " '1:shell:(bash zsh)'" : " '*:file:_files'");
}

void print_zsh(const CommandLine& line) {
  std::string commands;
  std::string cases;
  for (const CLI::App* sub : subcommands(line)) {
    commands += core::format("    '{}:{}'\n", sub->get_name(), zsh_text(sub->get_description()));
    cases += core::format("    {})\n      _arguments{} ;;\n", sub->get_name(), zsh_arguments(*sub));
  }
  core::print(R"(#compdef penstock
_penstock() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case ${{words[1]}} in
{}  esac
}}
compdef _penstock penstock
)",
              commands, cases);
}

std::function<int()> attach(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}))->type_name("SHELL");
  return [shell] {
    const CommandLine line;
    if (*shell == "bash") {
      print_bash(line);
    } else {
      print_zsh(line);
    }
    return 0;
  };
}

}  // namespace

const Command kCompletion{"completion", "Print a completion script for bash or zsh",
                          "Use it at once with: source <(penstock completion bash)", attach};

}  // namespace penstock::cli
