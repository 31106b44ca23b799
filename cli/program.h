#pragma once

#include <span>

namespace penstock::cli {

/// The whole command, for `main` and for the Python package: does what the words behind the program's name say, prints
/// errors to stderr and flushes stdout. Returns the exit code of the process. To be called once.
int run_program(std::span<char* const> words) noexcept;

}  // namespace penstock::cli
