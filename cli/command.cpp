#include "command.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/text.h"

namespace penstock::cli {
namespace {

/// CLI11 knows which word it could not place, but says only that a command is missing.
std::string wrong_usage(const CLI::App* app, const CLI::Error& error) {
  if (!app->get_subcommands().empty()) return CLI::FailureMessage::simple(app, error);
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const std::vector<std::string> words = app->remaining();
  std::string text = "name a command";
  if (!words.empty()) {
    const bool option = words[0].starts_with('-');
    text = core::format("there is no {} {}", option ? "option" : "command", core::quoted(words[0]));
    if (const auto near = core::nearest_names(words[0], names); !near.empty()) text += "; " + core::did_you_mean(near);
  }
  return core::format("{}\nCommands: {}. Run with --help for more information.\n", text, fmt::join(names, ", "));
}

}  // namespace

std::span<const Command> commands() noexcept {
  static const std::array kCommands{kLs, kInfo, kCat, kBench, kDoctor, kVersion, kCompletion, kMan};
  return kCommands;
}

CommandLine::CommandLine()
    : app("Look into tensor files and measure how fast they load, without running anything from them.") {
  app.name("penstock");
  app.require_subcommand(1);
  app.failure_message(wrong_usage);
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(std::string(command.description));
    sub->callback([this, action = command.attach(*sub)] { run = action; });
  }
}

}  // namespace penstock::cli
