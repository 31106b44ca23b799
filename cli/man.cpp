#include <string>

#include "command.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

/// Text in roff: hyphens stay hyphens and no line begins a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

void print_option(const CLI::Option& option) {
  const bool takes_value = option.get_items_expected_max() > 0;
  const std::string value = takes_value ? " " + roff(option.get_type_name()) : "";
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "\\-" : ", \\-") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "\\-\\-" : ", \\-\\-") + roff(name);
  if (names.empty()) names = roff(option.get_type_name());
  const std::string fallback =
      option.get_default_str().empty() ? "" : " (default " + roff(option.get_default_str()) + ")";
  core::print(".TP\n.B {}{}\n{}{}\n", names, option.get_positional() ? "" : value, roff(option.get_description()),
              fallback);
}

void print_command(const CLI::App& sub) {
  core::print(".SS {}\n{}.\n", roff(sub.get_name()), roff(sub.get_description()));
  if (!sub.get_footer().empty()) core::print("{}\n", roff(sub.get_footer()));
  for (const CLI::Option* option : sub.get_options()) print_option(*option);
}

int print_man() {
  const CommandLine line;
  core::print(".TH PENSTOCK 1 \"\" \"penstock {}\" \"User Commands\"\n", PENSTOCK_VERSION);
  core::print(".SH NAME\npenstock \\- tensors from files straight to memory\n");
  core::print(".SH SYNOPSIS\n.B penstock\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIFILE\\fR ...]\n");
  core::print(".SH DESCRIPTION\n{}\n.SH COMMANDS\n", roff(line.app.get_description()));
  for (const CLI::App* sub : line.app.get_subcommands([](const CLI::App*) { return true; })) print_command(*sub);
  core::print(
      ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nA file could not be read, or a check failed.\n"
      ".TP\n2\nWrong usage.\n");
  core::print(
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhen set and not empty, no colour is used. "
      "Colour and progress appear only on a terminal.\n");
  return 0;
}

}  // namespace

const Command kMan{"man", "Print this manual page in roff", "Read it with: penstock man | man -l -",
                   [](CLI::App&) -> std::function<int()> { return print_man; }};

}  // namespace penstock::cli
