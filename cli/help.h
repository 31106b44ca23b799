#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/command.h"

namespace penstock::cli {

/// The help of the program and its commands, in lines as long as the terminal is wide.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::size_t columns_;
};

/// What stands below a command's options: its description and examples, each line of those indented by two.
std::string footer_of(const Command& command);

}  // namespace penstock::cli
