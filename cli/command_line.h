#pragma once

// The command line as data, from which CLI11's parser (command_line.cpp), completion and the manual page are made.

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/option.h"

namespace penstock::cli {

/// The whole command line: the same object parses arguments and describes itself for completion and the man page.
struct CommandLine {
  struct Subcommand {
    const Command* command;
    Arguments arguments = {};
    std::function<int()> run = {};
  };

  /// What the words ask for: a command, or a text to be printed (help, the version).
  struct Asked {
    Subcommand* subcommand = nullptr;
    std::string text = {};
  };

  static constexpr std::string_view kDescription =
      "Look into, check, convert and pack tensor files and measure how fast they load, without running anything from "
      "them.";
  Arguments arguments;  ///< those of the program
  std::deque<Subcommand> subcommands;

  CommandLine();

  /// Parses the words behind the program's name: options and positionals in any order; behind `--` all are positionals.
  /// @throws WrongUsage with all that is to be said.
  Asked parse(std::vector<std::string> words);
};

}  // namespace penstock::cli
