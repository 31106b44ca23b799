#include "cli/program.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command_line.h"
#include "cli/json/json.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr int kUsage = 2;
constexpr std::string_view kJson = "--json";
/// As of a program that SIGPIPE ends: whoever read the output, such as head, has enough of it.
constexpr int kClosedPipe = 141;

/// The exit code where something fails, which a command may change.
int failed = 1;

/// Whether standard output is to be JSON.
bool output_is_json = false;

/// What went wrong is on standard error in words, and on standard output where a program waits for JSON.
int fail(const Error& error) noexcept {
  print_error(error.what());
  try {
    if (!output_is_json || is_json_printed()) return failed;
    print_json(error_json(error));
    std::fflush(stdout);
  } catch (const std::exception&) {
    return failed;  // nobody reads it
  }
  return failed;
}

int fail(const char* what) noexcept { return fail(Error(ErrorCode::kIo, what)); }

int run(const std::vector<std::string>& words) {
  CommandLine line;
  const auto [subcommand, text] = line.parse(words);
  if (subcommand == nullptr) {
    core::print("{}", text);
    return 0;
  }
  failed = subcommand->command->trouble;
  output_is_json = subcommand->arguments.has(kJson);
  return subcommand->run();
}

}  // namespace

int run_program(std::span<char* const> words) noexcept try {
  const int code = run(std::vector<std::string>(words.begin(), words.end()));
  // A full disk or closed descriptor shows only here: output that was lost is a failure.
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  return code;
} catch (const WrongUsage& error) {
  failed = kUsage;
  output_is_json = std::find(words.begin(), words.end(), kJson) != words.end();
  return fail(error.what());
} catch (const Error& error) {
  return fail(error);
} catch (const std::system_error& error) {
  if (std::ferror(stdout) == 0) return fail(error.what());
  if (error.code() == std::errc::broken_pipe) return kClosedPipe;
  return fail(core::format("standard output could not be written: {}", error.code().message()).c_str());
} catch (const std::bad_alloc&) {
  return fail("no memory is left for this; raise the limit on it (ulimit -v), or ask for less at a time");
} catch (const std::exception& error) {
  return fail(error.what());
}

}  // namespace penstock::cli
