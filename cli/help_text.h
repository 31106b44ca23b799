#pragma once

// What --help prints: the same whatever version of CLI11 parses, in as many columns as the terminal has.

#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/option.h"

namespace penstock::cli {

// Lines are as long as the terminal is wide: one that is longer goes on below the place where its text begins, behind
// the two columns of an option or at its own indentation. Examples stay whole.

/// How the program is used, with all commands.
std::string program_help(std::string_view description, const Arguments& arguments);
std::string command_help(const Command& command, const Arguments& arguments);

}  // namespace penstock::cli
