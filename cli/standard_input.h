#pragma once

// The words that name what a command reads: a file, a URL, "-" for standard input, a FIFO of the shell.

#include <string>
#include <string_view>

#include "penstock/source.h"

namespace penstock::cli {

/// The word of the command line that stands for standard input; "./-" is a file of this name.
inline constexpr std::string_view kStandardInput = "-";

/// Whether the word names a FIFO, which can be read once: a shell's <(zcat a.npy.gz).
bool is_fifo(const std::string& word);

/// What a word of the command line names: standard input, a FIFO, a file, a URL, or a folder that is one thing.
/// Standard input that is a regular file is opened as that file. Anything else, such as a pipe, is read into memory to
/// its end. Errors: those of open_source; for standard input and FIFOs kInvalidArgument where it is a terminal, closed,
/// empty or named for the second time, and kLimit where memory has no room for it.
Source input_source(const std::string& word);

}  // namespace penstock::cli
