// In place of the command where CLI11 was not there to build it with.

#include <cstdio>

#include "cli/program.h"

namespace penstock::cli {

int run_program(std::span<char* const>) noexcept {
  std::fputs(
      "penstock: this package was built without the command, because CLI11 was not there. Install CLI11 (Debian: "
      "libcli11-dev), then build and install penstock-tensors again\n",
      stderr);
  return 1;
}

}  // namespace penstock::cli
