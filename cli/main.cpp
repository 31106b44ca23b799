#include <cstdio>
#include <exception>

#include "command.h"
#include "core/format.h"
#include "penstock/error.h"
#include "terminal.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int fail(const char* what) {
  penstock::core::print(stderr, "{} {}\n", penstock::cli::paint(stderr, "31;1", "penstock:"), what);
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) try {
  penstock::cli::CommandLine line;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return line.app.exit(error) == 0 ? 0 : kUsage;
  }
  const int code = line.run();
  // A full disk or closed descriptor shows only here: output that was lost is a failure.
  if (std::fflush(stdout) != 0) return fail("standard output could not be written; is the disk full?");
  return code;
} catch (const penstock::Error& error) {
  return fail(error.what());
} catch (const std::exception& error) {
  return fail(error.what());
}
