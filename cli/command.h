#pragma once

// The table of subcommands, cli/command.cpp. A command is a file, or a folder, with one row.

#include <array>
#include <functional>
#include <span>
#include <string_view>

namespace penstock::cli {

struct Arguments;

/// One sub-command: a row of the table. `attach` adds what it takes to `arguments` and returns what runs it; the
/// returned function gives the exit code (0 done, 1 a check failed) or throws penstock::Error, which main turns into
/// `trouble`.
struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view description;
  /// Lines for a shell, in a folder that `penstock sample .` has filled.
  std::array<std::string_view, 3> examples;
  std::function<int()> (*attach)(Arguments& arguments);
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

}  // namespace penstock::cli
