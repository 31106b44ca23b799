#include "command.h"

#include <array>
#include <memory>
#include <string>

namespace penstock::cli {

std::span<const Command> commands() noexcept {
  static const std::array kCommands{kLs, kInfo, kCat, kBench, kDoctor, kVersion, kCompletion, kMan};
  return kCommands;
}

CommandLine::CommandLine()
    : app("Look into tensor files and measure how fast they load, without running anything from them.") {
  app.name("penstock");
  app.require_subcommand(1);
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(std::string(command.description));
    sub->callback([this, action = command.attach(*sub)] { run = action; });
  }
}

}  // namespace penstock::cli
