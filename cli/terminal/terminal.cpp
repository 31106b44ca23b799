#include "cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cwchar>
#include <exception>
#include <string_view>
#include <system_error>

#include "core/environment.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "core/utf8.h"

namespace penstock::cli {
namespace {

/// Columns that a terminal takes for it: two for a wide character (CJK, emoji), none for a combining mark. The C
/// library knows them in a locale of UTF-8; without one each character counts as one.
std::size_t display_width(std::string_view text) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  const locale_t before = utf8 == nullptr ? nullptr : uselocale(utf8);
  std::size_t width = 0;
  while (!text.empty()) {
    const auto character = core::take_code_point(text);
    if (!character) text.remove_prefix(1);
    const int columns = character && before != nullptr ? wcwidth(static_cast<wchar_t>(*character)) : 1;
    width += columns < 0 ? 1 : static_cast<std::size_t>(columns);
  }
  if (before != nullptr) uselocale(before);
  return width;
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return right ? space + cell : cell + space;
}

/// Whether nothing that was printed can be coloured or replaced.
bool is_dumb() noexcept {
  const char* const term = core::environment("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

}  // namespace

bool is_terminal(std::FILE* stream) noexcept { return isatty(fileno(stream)) == 1; }

bool wants_colour(std::FILE* stream) noexcept {
  const char* no_colour = core::environment("NO_COLOR");
  return is_terminal(stream) && !is_dumb() && (no_colour == nullptr || *no_colour == '\0');
}

std::size_t terminal_columns(std::FILE* stream) noexcept {
  constexpr std::size_t kLeast = 20;
  constexpr std::size_t kMost = 120;
  std::size_t columns = 0;
  if (const char* const set = core::environment("COLUMNS")) {
    const std::string_view text(set);
    if (std::from_chars(text.data(), text.data() + text.size(), columns).ec != std::errc{}) columns = 0;
  }
  winsize size{};
  if (columns == 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? 80 : std::clamp(columns, kLeast, kMost);
}

bool speaks_utf8() noexcept {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const locale = core::environment(name);
    if (locale == nullptr || *locale == '\0') continue;
    const std::string_view text(locale);
    const auto has = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
    return has("UTF-8") || has("utf8") || has("utf-8") || has("UTF8");
  }
  return false;
}

std::string paint(std::FILE* stream, std::string_view style, std::string_view text) {
  return wants_colour(stream) ? core::format("\x1B[{}m{}\x1B[0m", style, text) : std::string(text);
}

void show_progress(std::string_view text) {
  if (!is_terminal(stderr) || is_dumb()) return;
  // A line that goes on in the next one could not be replaced.
  const std::size_t room = terminal_columns(stderr) - 1;
  while (display_width(text) > room) text.remove_suffix(1);
  core::print(stderr, "\r{}\x1B[K", text);
}

void print_error(std::string_view what) noexcept {
  try {
    core::print(stderr, "{} {}\n", paint(stderr, "31;1", "penstock:"), core::without_secrets(what));
  } catch (const std::exception&) {
    // Nobody reads it; the exit status says it too.
  }
}

std::string printable(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\\');
    out += core::escaped(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += "\\\\";
    text.remove_prefix(end + 1);
  }
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

std::string human_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return core::format("{} {}{}", human_count(count), what, count == 1 ? "" : "s");
}

void print_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                 const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  widths.reserve(header.size());
  for (const std::string& cell : header) widths.push_back(display_width(cell));
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool to_right = std::find(right.begin(), right.end(), c) != right.end();
      text += padded(cells[c], widths[c], to_right) + (c + 1 < cells.size() ? "  " : "");
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  core::print("{}\n", paint(stdout, "1", line(header)));
  for (const auto& row : rows) core::print("{}\n", line(row));
}

}  // namespace penstock::cli
