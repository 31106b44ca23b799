#include "cli/command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/help.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "penstock/version.h"

namespace penstock::cli {
namespace {

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

/// What CLI11 says only where nothing else is wrong.
std::string unknown_option(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  const auto found = std::find_if(words.begin(), words.end(), is_option);
  if (found == words.end()) return {};
  std::vector<std::string> options;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  const auto near = core::nearest_names(*found, std::vector<std::string_view>(options.begin(), options.end()));
  return core::format("{} has no option {}{}\nRun with --help for more information.\n", app.get_name(),
                      core::quoted(*found), near.empty() ? "" : "; " + core::did_you_mean(near));
}

/// What the shell has made of a pattern without quotes: more words than the command takes, all of them there.
std::string expanded_pattern(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  std::error_code ignored;
  const bool takes_pattern = app.get_name() == kPack.name || app.get_name() == kBench.name;
  if (!takes_pattern || words.empty()) return {};
  const bool files = std::any_of(words.begin(), words.end(),
                                 [&](const std::string& word) { return std::filesystem::exists(word, ignored); });
  if (!files) return {};
  return core::format(
      "{0} takes one pattern, and found {1} more than it takes: put the pattern in quotes, or the shell writes "
      "out "
      "the files, as in penstock {0} 'clips/**/*.npy'{2}\n",
      app.get_name(), core::counted(words.size(), "word"), app.get_name() == kPack.name ? " shards" : "");
}

/// CLI11 knows which word it could not place, but says only that a command is missing.
std::string what_is_wrong(const CLI::App* app, const CLI::Error& error) {
  if (const auto chosen = app->get_subcommands(); !chosen.empty()) {
    if (std::string unknown = unknown_option(*chosen.front()); !unknown.empty()) return unknown;
    if (std::string expanded = expanded_pattern(*chosen.front()); !expanded.empty()) return expanded;
    return core::format("{}\nRun with --help for more information.\n", core::escaped(error.what()));
  }
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

/// As every other error begins.
std::string wrong_usage(const CLI::App* app, const CLI::Error& error) {
  return core::format("{} {}", paint(stderr, "31;1", "penstock:"),
                      core::without_secrets(what_is_wrong(app, error)));
}

/// Whether the word behind `word` is its value.
bool wants_value(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = is_option(word) ? app.get_option_no_throw(word) : nullptr;
  return option != nullptr && takes_value(*option);
}

/// Moves the positionals of [first, mark), words in front of `--`, behind it.
void move_positionals(const CLI::App& app, std::vector<std::string>& words, std::size_t first, std::size_t mark) {
  std::vector<std::string> options;
  std::vector<std::string> positionals;
  for (std::size_t i = first; i < mark; ++i) {
    (is_option(words[i]) ? options : positionals).push_back(words[i]);
    if (wants_value(app, words[i]) && i + 1 < mark) options.push_back(words[++i]);
  }
  options.emplace_back("--");
  options.insert(options.end(), positionals.begin(), positionals.end());
  std::copy(options.begin(), options.end(), words.begin() + static_cast<std::ptrdiff_t>(first));
}

/// CLI11 understands `--` only where a command still lacks a positional, so all of them are put behind it.
void settle_double_dash(const CLI::App& app, std::vector<std::string>& words) {
  const auto mark = std::find(words.begin(), words.end(), "--");
  const auto name = std::find_if_not(words.begin(), mark, is_option);
  if (mark == words.end() || name == mark) return;
  for (const CLI::App* sub : app.get_subcommands([&](const CLI::App* each) { return each->get_name() == *name; })) {
    move_positionals(*sub, words, static_cast<std::size_t>(name - words.begin()) + 1,
                     static_cast<std::size_t>(mark - words.begin()));
  }
}

}  // namespace

std::span<const Command> commands() noexcept {
  static const std::array kCommands{kLs,     kInfo,    kCat,        kShow, kStats,  kDiff,  kHash,
                                    kReport, kVerify,  kConvert,    kPack, kSample, kBench, kDoctor,
                                    kCache,  kUploads, kVersion,    kCompletion, kMan, kHelp};
  return kCommands;
}

CommandLine::CommandLine()
    : app("Look into, check, convert and pack tensor files and measure how fast they load, without running anything "
          "from them.") {
  app.name("penstock");
  app.set_version_flag("-V,--version", "penstock " PENSTOCK_VERSION_STRING, "Print the version and exit");
  app.require_subcommand(1);
  app.failure_message(wrong_usage);
  app.formatter(std::make_shared<HelpFormatter>());
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->footer(footer_of(command));
    sub->callback([this, action = command.attach(*sub), trouble_of = command.trouble] {
      run = action;
      trouble = trouble_of;
    });
  }
}

void CommandLine::parse(std::vector<std::string> words) {
  settle_double_dash(app, words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app.parse(std::move(words));
}

}  // namespace penstock::cli
