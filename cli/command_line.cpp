// The only source that includes CLI11: what the commands describe is told to it, and it parses.

#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <variant>

#include "cli/help_text.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "io/file/file_url.h"
#include "penstock/version.h"

namespace penstock::cli {
namespace {

using Subcommand = CommandLine::Subcommand;

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

/// What CLI11 says only where nothing else is wrong.
std::string unknown_option(const Subcommand& subcommand, const std::vector<std::string>& words) {
  const auto found = std::find_if(words.begin(), words.end(), is_option);
  if (found == words.end()) return {};
  std::vector<std::string> known;
  for (const Option& option : subcommand.arguments.options) {
    for (const std::string& name : option.long_names()) known.push_back(name);
  }
  const auto near = core::nearest_names(*found, known);
  return core::format("{} has no option {}{}\nRun with --help for more information.", subcommand.command->name,
                      core::quoted(*found), near.empty() ? "" : "; " + core::did_you_mean(near));
}

/// What the shell has made of a pattern without quotes: more words than the command takes, all of them there.
std::string expanded_pattern(std::string_view name, const std::vector<std::string>& words) {
  const bool takes_pattern = name == kPack.name || name == kBench.name;
  const bool files = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    std::error_code ignored;
    return std::filesystem::exists(word, ignored);
  });
  if (!takes_pattern || !files) return {};
  return core::format(
      "{0} takes one pattern, and found {1} more than it takes: put the pattern in quotes, or the shell writes out "
      "the files, as in penstock {0} 'clips/**/*.npy'{2}",
      name, core::counted(words.size(), "word"), name == kPack.name ? " shards" : "");
}

/// CLI11 knows which word it could not place, but says only that a command is missing.
std::string unknown_command(const std::vector<std::string>& words) {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) names.push_back(command.name);
  std::string text = "name a command";
  if (!words.empty()) {
    const bool option = words[0].starts_with('-');
    text = core::format("there is no {} {}", option ? "option" : "command", core::quoted(words[0]));
    if (const auto near = core::nearest_names(words[0], names); !near.empty()) text += "; " + core::did_you_mean(near);
  }
  return core::format("{}\nCommands: {}. Run with --help for more information.", text, fmt::join(names, ", "));
}

const Subcommand* find(const std::deque<Subcommand>& subcommands, std::string_view name) {
  const auto found = std::find_if(subcommands.begin(), subcommands.end(),
                                  [&](const Subcommand& each) { return each.command->name == name; });
  return found == subcommands.end() ? nullptr : &*found;
}

/// CLI11 says "--sort: 1 required name|size missing", and "--sort: At Most 1 required but received 2".
std::string in_our_words(std::string_view error) {
  if (const std::size_t often = error.find(": At Most 1 required but received "); often != error.npos) {
    return core::format("{}: is given more than once, and only one counts", error.substr(0, often));
  }
  constexpr std::string_view kLacks = ": 1 required ";
  constexpr std::string_view kMissing = " missing";
  const std::size_t at = error.find(kLacks);
  if (at == error.npos || !error.ends_with(kMissing)) return std::string(error);
  const std::string_view wanted = error.substr(at + kLacks.size());
  return core::format("{}: expected {} behind it", error.substr(0, at),
                      wanted.substr(0, wanted.size() - kMissing.size()));
}

/// In better words than CLI11's, `error`, where it knows less than there is to say.
std::string what_is_wrong(const std::deque<Subcommand>& subcommands, const CLI::App& app, std::string_view error) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) return unknown_command(app.remaining());
  if (const std::vector<std::string> before = app.remaining(); !before.empty()) {
    return core::format("there is no option {0} in front of a command; options stand behind it: penstock {1} {2}",
                        core::quoted(before.front()), parsed.front()->get_name(), core::escaped(before.front()));
  }
  const std::vector<std::string> words = parsed.front()->remaining();
  const Subcommand& subcommand = *find(subcommands, parsed.front()->get_name());
  if (std::string unknown = unknown_option(subcommand, words); !unknown.empty()) return unknown;
  if (std::string expanded = expanded_pattern(subcommand.command->name, words); !expanded.empty()) return expanded;
  const std::string text =
      words.empty() || is_option(words.front())
          ? in_our_words(error)
          : core::format("{} takes no more words, found {}", subcommand.command->name, core::quoted(words.front()));
  return core::format("{}\nRun with --help for more information.", core::escaped(text));
}

/// Moves the positionals of [first, mark), words in front of `--`, behind it.
void move_positionals(const Arguments& arguments, std::vector<std::string>& words, std::size_t first,
                      std::size_t mark) {
  std::vector<std::string> options;
  std::vector<std::string> positionals;
  for (std::size_t i = first; i < mark; ++i) {
    (is_option(words[i]) ? options : positionals).push_back(words[i]);
    const Option* const option = is_option(words[i]) ? arguments.find(words[i]) : nullptr;
    if (option != nullptr && option->takes_value() && i + 1 < mark) options.push_back(words[++i]);
  }
  options.emplace_back("--");
  options.insert(options.end(), positionals.begin(), positionals.end());
  std::copy(options.begin(), options.end(), words.begin() + static_cast<std::ptrdiff_t>(first));
}

/// CLI11 understands `--` only where a command still lacks a positional, so all of them are put behind it.
void settle_double_dash(const std::deque<Subcommand>& subcommands, std::vector<std::string>& words) {
  const auto mark = std::find(words.begin(), words.end(), "--");
  const auto name = std::find_if_not(words.begin(), mark, is_option);
  if (mark == words.end() || name == mark) return;
  const Subcommand* const subcommand = find(subcommands, *name);
  if (subcommand == nullptr) return;
  move_positionals(subcommand->arguments, words, static_cast<std::size_t>(name - words.begin()) + 1,
                   static_cast<std::size_t>(mark - words.begin()));
}

/// Adds an option of each kind of target.
struct Adder {
  CLI::App& app;
  const std::string& names;
  const std::string& description;

  CLI::Option* operator()(std::monostate) const {
    if (names == "-h,--help") return app.set_help_flag(names, description);
    return app.set_version_flag(names, "penstock " PENSTOCK_VERSION_STRING, description);
  }
  CLI::Option* operator()(bool* target) const { return app.add_flag(names, *target, description); }
  CLI::Option* operator()(const std::function<void()>& act) const {
    return app.add_flag_callback(names, act, description);
  }
  CLI::Option* operator()(const std::function<void(const std::string&)>& take) const {
    return app.add_option_function<std::string>(names, take, description);
  }
  template <typename T>
  CLI::Option* operator()(T* target) const {
    return app.add_option(names, *target, description);
  }
};

void add(CLI::App& app, const Option& option) {
  const std::string names = core::format("{}", fmt::join(option.names, ","));
  CLI::Option& added = *std::visit(Adder{app, names, option.description}, option.target);
  added.required(option.is_required);
  if (!option.type_name.empty()) added.type_name(option.type_name);
  if (option.takes_many() && !option.is_positional()) added.allow_extra_args(false);
  const auto check = [&option](std::string& text) {
    if (option.takes_location()) text = io::local_path(text);
    const std::string given = text;
    // A variable of the shell that is not set would otherwise stand for what is not given.
    const bool is_lost = text.empty() && std::holds_alternative<std::string*>(option.target);
    const std::string expected = option.check ? option.check(text) : is_lost ? option.type_name : std::string();
    return expected.empty() ? std::string() : core::format("found {}, expected {}", core::quoted(given), expected);
  };
  if (option.takes_value()) added.transform(CLI::Validator(check, ""));
}

void add(CLI::App& app, const Arguments& arguments) {
  for (const Option& option : arguments.options) add(app, option);
  for (const Option& option : arguments.options) {
    if (!option.excluded.empty()) app.get_option(option.names[0])->excludes(app.get_option(option.excluded));
  }
}

void note_given(const CLI::App& app, Arguments& arguments) {
  for (Option& option : arguments.options) option.is_given = app.count(option.names[0]) > 0;
}

/// `asked` becomes the command that is parsed.
void add(CLI::App& app, Subcommand& subcommand, CommandLine::Asked& asked) {
  const Command& command = *subcommand.command;
  Arguments& arguments = subcommand.arguments;
  CLI::App& own = *app.add_subcommand(std::string(command.name), std::string(command.summary));
  add(own, arguments);
  own.callback([&] {
    note_given(own, arguments);
    asked.subcommand = &subcommand;
  });
  if (!arguments.refuse) return;
  own.parse_complete_callback([&] {
    note_given(own, arguments);
    arguments.refuse(arguments);
  });
}

}  // namespace

CommandLine::CommandLine() {
  arguments.add("-V,--version", {}, "Print the version and exit");
  for (const Command& command : commands()) {
    Subcommand& added = subcommands.emplace_back(Subcommand{.command = &command});
    added.run = command.attach(added.arguments);
  }
}

CommandLine::Asked CommandLine::parse(std::vector<std::string> words) {
  settle_double_dash(subcommands, words);
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  Asked asked;
  CLI::App app(std::string(kDescription), "penstock");
  app.require_subcommand(1);
  add(app, arguments);
  for (Subcommand& subcommand : subcommands) add(app, subcommand, asked);
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    const auto parsed = app.get_subcommands();
    if (parsed.empty()) return {.text = program_help(kDescription, arguments)};
    const Subcommand& named = *find(subcommands, parsed.back()->get_name());
    return {.text = command_help(*named.command, named.arguments)};
  } catch (const CLI::CallForVersion& version) {
    return {.text = core::format("{}\n", version.what())};
  } catch (const CLI::Error& error) {
    throw WrongUsage(what_is_wrong(subcommands, app, error.what()));
  } catch (const WrongUsage& error) {
    throw WrongUsage(what_is_wrong(subcommands, app, error.what()));
  }
  return asked;
}

}  // namespace penstock::cli
