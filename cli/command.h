#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

/// One sub-command: a row of the table. `attach` adds its options to `app` and returns what runs it; the returned
/// function gives the exit code (0 done, 1 a check failed) or throws penstock::Error, which main turns into `trouble`.
struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view description;
  /// Lines for a shell, in a folder that `penstock sample .` has filled.
  std::array<std::string_view, 3> examples;
  std::function<int()> (*attach)(CLI::App& app);
  int trouble = 1;  ///< the exit code where it throws
};

/// The table, in the order of the help.
std::span<const Command> commands() noexcept;

// One declaration for each row; each is defined in its own file.
extern const Command kLs;
extern const Command kInfo;
extern const Command kCat;
extern const Command kShow;
extern const Command kStats;
extern const Command kDiff;
extern const Command kHash;
extern const Command kReport;
extern const Command kVerify;
extern const Command kConvert;
extern const Command kPack;
extern const Command kSample;
extern const Command kBench;
extern const Command kDoctor;
extern const Command kCache;
extern const Command kUploads;
extern const Command kVersion;
extern const Command kCompletion;
extern const Command kMan;
extern const Command kHelp;

/// The whole command line: the same object parses arguments and describes itself for completion and the man page.
struct CommandLine {
  CLI::App app;
  std::function<int()> run;  ///< set by parsing, as what follows
  int trouble = 1;           ///< of the command

  CommandLine();

  /// Parses the words behind the program's name: options and positionals in any order; behind `--` all are positionals.
  /// @throws CLI::ParseError, also where help or the version is asked for.
  void parse(std::vector<std::string> words);
};

}  // namespace penstock::cli
