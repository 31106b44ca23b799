#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

using Subcommand = CommandLine::Subcommand;

/// Whether the names of the tensors in the file that was named are offered. NAME of an option is one of a folder.
bool takes_tensor(const Option& option) {
  const std::string& name = option.type_name;
  const bool is_name = name == "NAME" || name == "PATH|NAME";
  return (is_name && option.is_positional()) || name == "PATTERN" || name == "KEY";
}

std::string joined(const std::vector<std::string>& words) { return core::format("{}", fmt::join(words, " ")); }

/// "--json --slice" of one sub-command, or of the program.
std::string flags_of(const Arguments& arguments) {
  std::string out;
  for (const Option& option : arguments.options) {
    for (const std::string& name : option.long_names()) out += (out.empty() ? "" : " ") + name;
  }
  return out;
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

/// What bash is to offer for a value or positional: ` words="stack pad ragged"`, ` files=yes`, ` names=yes`, or
/// nothing.
std::string bash_offer(const Option& option) {
  if (!option.words.empty()) return core::format(" words=\"{}\"", joined(option.words));
  return core::format("{}{}", option.takes_location() ? " files=yes" : "", takes_tensor(option) ? " names=yes" : "");
}

/// A case for each option with a value: "bench --collate") words="stack pad ragged" ;;
std::string bash_values(const Subcommand& sub) {
  std::string out;
  for (const Option& option : sub.arguments.options) {
    if (!option.takes_value()) continue;
    for (const std::string& name : option.long_names()) {
      out += core::format("    \"{} {}\"){} ;;\n", sub.command->name, name, bash_offer(option));
    }
  }
  return out;
}

std::string bash_words(const Subcommand& sub) {
  std::string offers;
  for (const Option& option : sub.arguments.options) {
    if (option.is_positional()) offers += bash_offer(option);
  }
  return core::format("        {}) options=\"{}\"{} ;;\n", sub.command->name, flags_of(sub.arguments), offers);
}

void print_bash(const CommandLine& line) {
  std::string names;
  std::string values;
  std::string cases;
  for (const Subcommand& sub : line.subcommands) {
    names += core::format("{}{}", names.empty() ? "" : " ", sub.command->name);
    values += bash_values(sub);
    cases += bash_words(sub);
  }
  core::print(R"(# bash completion for penstock: source it, or install it as share/bash-completion/completions/penstock
# The names of the tensors in the first of these words that is a file, which begin as the last word does.
_penstock_names() {{
  local word name
  for word in "${{@:2}}"; do
    [[ -f $word || -d $word ]] || continue
    while IFS= read -r name; do
      [[ $name == "${{@: -1}}"* ]] && COMPREPLY+=("$name")
    done < <(timeout 5 "$1" ls --names -- "$word" 2> /dev/null)
    return
  done
}}
_penstock() {{
  local current previous options="" words="" files="" names="" command="" last="${{COMP_WORDS[COMP_CWORD]}}" glue="" i
  local -a line=()
  # Bash cuts words at = and :, which names of files have too.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if [[ ${{#line[@]}} -gt 0 && ( -n $glue || ${{COMP_WORDS[i]}} == [:=]* ) ]]; then
      line[-1]+="${{COMP_WORDS[i]}}"
    else
      line+=("${{COMP_WORDS[i]}}")
    fi
    [[ ${{COMP_WORDS[i]}} == *[:=] ]] && glue=yes || glue=""
  done
  current="${{line[-1]}}"
  previous="${{line[-2]-}}"
  [[ $last == [:=] ]] && last=""
  local cut="${{current%"$last"}}"
  if [[ $current == --*=* ]]; then
    previous="${{current%%=*}}"
    current="${{current#*=}}"
    cut="${{cut#*=}}"
  fi
  for ((i = 1; i < ${{#line[@]}} - 1; i++)); do
    [[ ${{line[i]}} == -* ]] || {{ command="${{line[i]}}"; break; }}
  done
  # As it is without quotes.
  for ((i = 0; i < ${{#line[@]}}; i++)); do line[i]="${{line[i]//[\\\"\']}}"; done
  current="${{current//[\\\"\']}}"
  cut="${{cut//[\\\"\']}}"
  case "$command $previous" in
{}    *)
      case "$command" in
        "") options="{}" words="{}" ;;
{}      esac
      if [[ $current == -* ]]; then words="$options" files="" names=""; fi
      ;;
  esac
  COMPREPLY=()
  if [[ -n $names ]]; then _penstock_names "${{line[0]}}" "${{line[@]:2:${{#line[@]}}-3}}" "$current"; fi
  if [[ -n $files && ${{#COMPREPLY[@]}} -eq 0 ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  elif [[ -z $files$names ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
  for ((i = 0; i < ${{#COMPREPLY[@]}}; i++)); do COMPREPLY[i]="${{COMPREPLY[i]#"$cut"}}"; done
}}
complete -o filenames -F _penstock penstock
)",
              values, flags_of(line.arguments), names, cases);
}

/// ":stack|pad|ragged:(stack pad ragged)", ":FILE:_files", ":N:".
std::string zsh_offer(const Option& option) {
  const std::vector<std::string>& words = option.words;
  const std::string action = !words.empty()                                    ? "(" + joined(words) + ")"
                             : option.takes_location() && takes_tensor(option) ? "{_files; _penstock_names}"
                             : option.takes_location()                         ? "_files"
                             : takes_tensor(option)                            ? "_penstock_names"
                                                                               : "";
  return core::format(":{}:{}", zsh_text(option.type_name), action);
}

std::string zsh_options(const Subcommand& sub) {
  std::string out;
  for (const Option& option : sub.arguments.options) {
    const bool value = option.takes_value();
    for (const std::string& name : option.long_names()) {
      out += core::format(" \\\n        '{}{}[{}]{}'", name, value ? "=" : "", zsh_text(option.description),
                          value ? zsh_offer(option) : "");
    }
  }
  return out;
}

std::string zsh_positionals(const Subcommand& sub) {
  std::string out;
  int place = 0;
  for (const Option& option : sub.arguments.options) {
    if (!option.is_positional()) continue;
    ++place;
    const bool many = option.takes_many();
    out += core::format(" \\\n        '{}{}'", many ? "*" : std::to_string(place), zsh_offer(option));
  }
  return out;
}

void print_zsh(const CommandLine& line) {
  std::string commands;
  std::string cases;
  for (const Subcommand& sub : line.subcommands) {
    commands += core::format("    '{}:{}'\n", sub.command->name, zsh_text(sub.command->summary));
    cases +=
        core::format("    {})\n      _arguments{} ;;\n", sub.command->name, zsh_options(sub) + zsh_positionals(sub));
  }
  core::print(R"(#compdef penstock
# The names of the tensors in the first of the words that is a file.
_penstock_names() {{
  local word
  local -a names
  for word in ${{(Q)words[2,-1]}}; do
    [[ -f $word || -d $word ]] || continue
    names=("${{(@f)$(command penstock ls --names -- "$word" 2> /dev/null)}}")
    compadd -a names
    return
  done
}}
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
std::string fish_offer(const Option& option) {
  if (!option.words.empty()) return core::format(" -a '{}'", joined(option.words));
  return core::format("{}{}", option.takes_location() ? " -F" : "",
                      takes_tensor(option) ? " -a '(__penstock_names)'" : "");
}

/// -x is -r without files: fish refuses it beside -F.
std::string fish_value(const Option& option) {
  if (!option.takes_value()) return "";
  return (option.takes_location() ? " -r" : " -x") + fish_offer(option);
}

void print_fish_command(const Subcommand& sub) {
  const std::string when = core::format("complete -c penstock -n '__fish_seen_subcommand_from {}'", sub.command->name);
  for (const Option& option : sub.arguments.options) {
    for (const std::string& name : option.long_names()) {
      core::print("{} -l {}{} -d '{}'\n", when, name.substr(2), fish_value(option), fish_text(option.description));
    }
  }
  for (const Option& option : sub.arguments.options) {
    if (!option.is_positional()) continue;
    const std::string offer = fish_offer(option);
    if (!offer.empty()) core::print("{}{}\n", when, offer);
  }
}

void print_fish(const CommandLine& line) {
  core::print("# fish completion for penstock: install it as ~/.config/fish/completions/penstock.fish\n");
  core::print(R"(# The names of the tensors in the first of the words that is a file.
function __penstock_names
  for word in (commandline -opc)[3..-1]
    if test -f "$word" -o -d "$word"
      penstock ls --names -- "$word" 2> /dev/null
      return
    end
  end
end
)");
  core::print("complete -c penstock -f\n");
  for (const Subcommand& sub : line.subcommands) {
    core::print("complete -c penstock -n __fish_use_subcommand -a {} -d '{}'\n", sub.command->name,
                fish_text(sub.command->summary));
    print_fish_command(sub);
  }
}

std::function<int()> attach_completion(Arguments& arguments) {
  auto shell = std::make_shared<std::string>();
  arguments.add("SHELL", shell.get(), "The shell that reads the script").required().takes_word({"bash", "zsh", "fish"});
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
                          attach_completion};

}  // namespace penstock::cli
