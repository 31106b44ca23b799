#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/option.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

std::vector<const CLI::App*> subcommands(const CommandLine& line) {
  return line.app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_file(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name == "FILE" || name == "PATH" || name == "PATH|NAME";
}

std::string joined(const std::vector<std::string>& words) { return core::format("{}", fmt::join(words, " ")); }

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

/// "--json --slice" of one sub-command, or of the program.
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

/// What bash is to offer for a value or positional: ` words="stack pad ragged"`, ` files=yes`, or nothing.
std::string bash_offer(const CLI::Option& option) {
  const std::vector<std::string> words = words_of(option);
  if (!words.empty()) return core::format(" words=\"{}\"", joined(words));
  return takes_file(option) ? " files=yes" : "";
}

/// A case for each option with a value: "bench --collate") words="stack pad ragged" ;;
std::string bash_values(const CLI::App& sub) {
  std::string out;
  for (const CLI::Option* option : sub.get_options()) {
    if (!takes_value(*option)) continue;
    for (const std::string& name : option->get_lnames()) {
      out += core::format("    \"{} --{}\"){} ;;\n", sub.get_name(), name, bash_offer(*option));
    }
  }
  return out;
}

std::string bash_words(const CLI::App& sub) {
  std::string offers;
  for (const CLI::Option* option : positionals_of(sub)) offers += bash_offer(*option);
  return core::format("        {}) options=\"{}\"{} ;;\n", sub.get_name(), flags_of(sub), offers);
}

void print_bash(const CommandLine& line) {
  std::string names;
  std::string values;
  std::string cases;
  for (const CLI::App* sub : subcommands(line)) {
    names += (names.empty() ? "" : " ") + sub->get_name();
    values += bash_values(*sub);
    cases += bash_words(*sub);
  }
  core::print(R"(# bash completion for penstock: source it, or install it as share/bash-completion/completions/penstock
_penstock() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}"
  local options="" words="" files="" command="" i
  # --option=value is three words to bash.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" ]]; then
    previous="${{COMP_WORDS[COMP_CWORD - 2]}}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command="${{COMP_WORDS[i]}}"; break; }}
  done
  case "$command $previous" in
{}    *)
      case "$command" in
        "") options="{}" words="{}" ;;
{}      esac
      if [[ $current == -* ]]; then words="$options" files=""; fi
      ;;
  esac
  if [[ -n $files ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}}
complete -o filenames -F _penstock penstock
)",
              values, flags_of(line.app), names, cases);
}

/// ":stack|pad|ragged:(stack pad ragged)", ":FILE:_files", ":N:".
std::string zsh_offer(const CLI::Option& option) {
  const std::vector<std::string> words = words_of(option);
  const std::string action = !words.empty() ? "(" + joined(words) + ")" : takes_file(option) ? "_files" : "";
  return core::format(":{}:{}", zsh_text(option.get_type_name()), action);
}

std::string zsh_options(const CLI::App& sub) {
  std::string out;
  for (const CLI::Option* option : sub.get_options()) {
    const bool value = takes_value(*option);
    for (const std::string& name : option->get_lnames()) {
      out += core::format(" \\\n        '--{}{}[{}]{}'", name, value ? "=" : "", zsh_text(option->get_description()),
                          value ? zsh_offer(*option) : "");
    }
  }
  return out;
}

std::string zsh_positionals(const CLI::App& sub) {
  std::string out;
  int place = 0;
  for (const CLI::Option* option : positionals_of(sub)) {
    ++place;
    const bool many = option->get_items_expected_max() > 1;
    out += core::format(" \\\n        '{}{}'", many ? "*" : std::to_string(place), zsh_offer(*option));
  }
  return out;
}

void print_zsh(const CommandLine& line) {
  std::string commands;
  std::string cases;
  for (const CLI::App* sub : subcommands(line)) {
    commands += core::format("    '{}:{}'\n", sub->get_name(), zsh_text(sub->get_description()));
    cases +=
        core::format("    {})\n      _arguments{} ;;\n", sub->get_name(), zsh_options(*sub) + zsh_positionals(*sub));
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

/// Inside single quotes of fish.
std::string fish_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// What fish is to offer for a value or positional: words, files, or nothing.
std::string fish_offer(const CLI::Option& option) {
  const std::vector<std::string> words = words_of(option);
  if (!words.empty()) return core::format(" -a '{}'", joined(words));
  return takes_file(option) ? " -F" : "";
}

void print_fish_command(const CLI::App& sub) {
  const std::string when = core::format("complete -c penstock -n '__fish_seen_subcommand_from {}'", sub.get_name());
  for (const CLI::Option* option : sub.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      core::print("{} -l {}{} -d '{}'\n", when, name, takes_value(*option) ? " -x" + fish_offer(*option) : "",
                  fish_text(option->get_description()));
    }
  }
  for (const CLI::Option* option : positionals_of(sub)) {
    const std::string offer = fish_offer(*option);
    if (!offer.empty()) core::print("{}{}\n", when, offer);
  }
}

void print_fish(const CommandLine& line) {
  core::print("# fish completion for penstock: install it as ~/.config/fish/completions/penstock.fish\n");
  core::print("complete -c penstock -f\n");
  for (const CLI::App* sub : subcommands(line)) {
    core::print("complete -c penstock -n __fish_use_subcommand -a {} -d '{}'\n", sub->get_name(),
                fish_text(sub->get_description()));
    print_fish_command(*sub);
  }
}

std::function<int()> attach(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  take_word(*app.add_option("shell", *shell, "The shell that reads the script")->required(), {"bash", "zsh", "fish"});
  return [shell] {
    const CommandLine line;
    if (*shell == "bash") {
      print_bash(line);
    } else if (*shell == "zsh") {
      print_zsh(line);
    } else {
      print_fish(line);
    }
    return 0;
  };
}

}  // namespace

const Command kCompletion{"completion",
                          "Print a completion script for bash, zsh or fish",
                          "Use it at once with: source <(penstock completion bash)",
                          {"source <(penstock completion bash)", "penstock completion zsh > ~/.zfunc/_penstock",
                           "penstock completion fish > ~/.config/fish/completions/penstock.fish"},
                          attach};

}  // namespace penstock::cli
