#pragma once

// Help in as many columns as the terminal has.

#include <cstddef>
#include <string>

namespace penstock::cli {

/// The column in which the text of options begins.
inline constexpr std::size_t kTextColumn = 30;

/// A help in lines as long as the terminal is wide. Each line that is longer goes on below the place where its text
/// begins: behind the two columns of an option, or at the line's own indentation. Examples stay whole.
std::string in_columns(const std::string& help);

}  // namespace penstock::cli
