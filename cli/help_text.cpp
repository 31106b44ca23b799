// CLI11 lays out the help in lines of any length. Each of them is broken here.

#include "cli/help_text.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "cli/terminal/terminal.h"

namespace penstock::cli {
namespace {

/// Text that is narrower than this stands below the option, not beside it.
constexpr std::size_t kLeastText = 24;

/// Where the line goes on when it is broken.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
  const std::size_t first = line.find_first_not_of(' ');
  const bool is_option = first == 2 && line.size() > kTextColumn && line[kTextColumn - 1] == ' ';
  const std::size_t indent = is_option ? kTextColumn : first;
  return indent + kLeastText > columns ? std::min<std::size_t>(first, 4) : indent;
}

std::string broken(std::string_view line, std::size_t columns) {
  if (line.size() <= columns) return std::string(line);
  const std::string indent(hanging_indent(line, columns), ' ');
  std::string out;
  while (line.size() > columns - (out.empty() ? 0 : indent.size())) {
    const std::size_t room = columns - (out.empty() ? 0 : indent.size());
    std::size_t space = line.substr(0, room + 1).rfind(' ');
    // A word longer than the line stays whole.
    if (space == line.npos || space <= line.find_first_not_of(' ')) {
      space = line.find(' ', std::min(line.size(), line.find_first_not_of(' ')));
    }
    if (space == line.npos) break;
    std::string_view part = line.substr(0, space);
    part.remove_suffix(part.size() - 1 - part.find_last_not_of(' '));
    out += (out.empty() ? "" : indent) + std::string(part) + "\n";
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ', space)));
  }
  return out + (out.empty() ? "" : indent) + std::string(line);
}

}  // namespace

std::string in_columns(const std::string& help) {
  const std::size_t columns = terminal_columns(stdout);
  std::istringstream lines(help);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    // An example is a line for the shell.
    const bool is_example = line.starts_with("  penstock ") || line.starts_with("  source ");
    out += (is_example ? line : broken(line, columns)) + "\n";
  }
  return out;
}

}  // namespace penstock::cli
