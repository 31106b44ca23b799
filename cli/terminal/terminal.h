#pragma once

// How the command prints: width and colours of the terminal, text from files made harmless, numbers for people, tables.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

/// Whether colour and progress belong on `stream`: it is a terminal; for colour also NO_COLOR is unset and TERM not
/// "dumb".
bool is_terminal(std::FILE* stream) noexcept;
bool wants_colour(std::FILE* stream) noexcept;

/// How many columns `stream` has: COLUMNS where that is set, else what the terminal says; 80 where there is none.
/// Between 20 and 120, beyond which lines are hard to read.
std::size_t terminal_columns(std::FILE* stream) noexcept;

/// Whether the environment's locale is one of UTF-8, so that characters beyond ASCII can be shown.
bool speaks_utf8() noexcept;

/// `text` in an SGR style such as "1" (bold) or "31;1" where `stream` wants colour, else as it is.
std::string paint(std::FILE* stream, std::string_view style, std::string_view text);

/// Where stderr is a terminal, and not a dumb one: `text` in place of what was shown before; empty to leave nothing.
void show_progress(std::string_view text);

/// "penstock: WHAT" and a newline to stderr, as all errors are told.
void print_error(std::string_view what) noexcept;

/// Text from a file made safe to print: what core::escaped writes out is; backslashes are doubled, so that none passes
/// for the beginning of an escape.
std::string printable(std::string_view text);

/// The text, or the whole characters of its first `most` bytes and "...".
std::string shortened(const std::string& text, std::size_t most);

/// "12,345".
std::string human_count(std::uint64_t count);
/// "1 file", "12,345 files".
std::string counted(std::uint64_t count, std::string_view what);

/// Rows under a header, columns padded to their widest cell; `right` lists columns that align right. Printed to stdout.
void print_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                 const std::vector<std::size_t>& right);

}  // namespace penstock::cli
