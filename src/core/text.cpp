// Names in files are written by strangers, and end up in error messages on a terminal. So characters that move the
// cursor, reorder text or are not seen are written as escapes. Names that are near to a wrong key are found by the
// number of edits between them, with a limit, because a file may have very many names.

#include "core/text.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/ascii.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/utf8.h"

namespace penstock::core {
namespace {

constexpr std::size_t kMaxQuoted = 80;
constexpr std::size_t kQuotedHead = 50;
constexpr std::size_t kQuotedTail = 26;
constexpr std::size_t kMaxKey = 256;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

struct Span {
  char32_t first;
  char32_t last;
};

/// What a terminal obeys in place of showing, what reorders or breaks the text around it, and what is not seen at all
/// (Unicode's Default_Ignorable_Code_Point). In order.
constexpr std::array kUnprintable = {
    Span{0x00, 0x1F},        // C0 controls
    Span{0x7F, 0x9F},        // delete, C1 controls
    Span{0xAD, 0xAD},        // soft hyphen
    Span{0x034F, 0x034F},    // combining grapheme joiner
    Span{0x061C, 0x061C},    // Arabic letter mark
    Span{0x115F, 0x1160},    // Hangul fillers
    Span{0x17B4, 0x17B5},    // Khmer inherent vowels
    Span{0x180B, 0x180F},    // Mongolian selectors and separator
    Span{0x200B, 0x200F},    // zero width, directional marks
    Span{0x2028, 0x202E},    // separators of lines and paragraphs, directional embeddings and overrides
    Span{0x2060, 0x206F},    // invisible operators, directional isolates
    Span{0x3164, 0x3164},    // Hangul filler
    Span{0xFE00, 0xFE0F},    // variation selectors
    Span{0xFEFF, 0xFEFF},    // byte order mark
    Span{0xFFA0, 0xFFA0},    // halfwidth Hangul filler
    Span{0xFFF0, 0xFFFB},    // interlinear annotations
    Span{0x1BCA0, 0x1BCA3},  // shorthand controls
    Span{0x1D173, 0x1D17A},  // musical controls
    Span{0xE0000, 0xE0FFF},  // tags, further variation selectors
};

bool is_unprintable(char32_t c) {
  const auto* const span = std::lower_bound(kUnprintable.begin(), kUnprintable.end(), c,
                                            [](const Span& before, char32_t value) { return before.last < value; });
  return span != kUnprintable.end() && c >= span->first;
}

/// How a control character is written that has a letter for it; nothing for others.
std::string_view lettered(char32_t c) { return c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : ""; }

void append_escaped(std::string& out, char32_t point) {
  const auto code = static_cast<std::uint32_t>(point);
  if (const std::string_view known = lettered(point); !known.empty()) {
    out += known;
  } else if (code < 0x100) {
    core::append(out, "\\x{:02x}", code);
  } else {
    core::append(out, "\\u{{{:04x}}}", code);
  }
}

bool is_plain_in_json(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

/// As UTF-16 has it.
void append_json_code(std::string& out, std::uint32_t value) {
  if (value < 0x10000) return core::append(out, "\\u{:04x}", value);
  const std::uint32_t above = value - 0x10000;
  core::append(out, "\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10U), 0xDC00 + (above & 0x3FFU));
}

void append_json_ascii(std::string& out, char c) {
  if (const std::string_view known = lettered(static_cast<unsigned char>(c)); !known.empty()) {
    out += known;
  } else if (c == '"' || c == '\\') {
    (out += '\\') += c;
  } else {
    append_json_code(out, static_cast<unsigned char>(c));
  }
}

/// A byte that begins no character is half a pair, as Python's "surrogateescape" has it.
FirstCodePoint decode_for_json(std::string_view text) {
  const FirstCodePoint first = first_code_point(text);
  if (first.bytes != 0) return first;
  return {0xDC00U | static_cast<unsigned char>(text.front()), 1};
}

/// Levenshtein distance where case counts as nothing; `limit` + 1 as soon as it is certain to exceed `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t too_far = limit + 1;
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return too_far;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    std::size_t best = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      best = std::min(best, row[j]);
    }
    if (best > limit) return too_far;
  }
  return row[b.size()];
}

}  // namespace

std::string escaped(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const FirstCodePoint point = first_code_point(text);
    const bool is_character = point.bytes != 0 && !point.is_surrogate();
    const std::size_t bytes = is_character ? point.bytes : 1;
    if (!is_character) {
      append_escaped(out, static_cast<unsigned char>(text.front()));
    } else if (is_unprintable(point.value)) {
      append_escaped(out, point.value);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), is_plain_in_json);
    out.append(text.begin(), end);
    text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
    if (text.empty()) break;
    const FirstCodePoint point = decode_for_json(text);
    if (point.value < 0x80) {
      append_json_ascii(out, text.front());
    } else if (point.is_surrogate() || is_unprintable(point.value)) {
      append_json_code(out, static_cast<std::uint32_t>(point.value));
    } else {
      out += text.substr(0, point.bytes);
    }
    text.remove_prefix(point.bytes);
  }
  return out + '"';
}

std::string quoted(std::string_view text) {
  // What is left of a URL without its middle would not look like one, and have the end of a signature.
  const std::string shown = shown_path(text);
  text = shown;
  if (text.size() <= kMaxQuoted) return core::format("'{}'", escaped(text));
  std::size_t head = kQuotedHead;
  while (head > kQuotedHead - 3 && is_continuation(text[head])) --head;
  std::size_t tail = text.size() - kQuotedTail;
  while (tail < text.size() - kQuotedTail + 3 && is_continuation(text[tail])) ++tail;
  return core::format("'{}...{}'", escaped(text.substr(0, head)), escaped(text.substr(tail)));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return core::format("{} {}", bytes, bytes == 1 ? "byte" : "bytes");
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::string number = core::format("{:.{}f}", value, value < 99.95 ? 1 : 0);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return core::format("{} {}", number, kUnits[unit]);
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string did_you_mean(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string out = "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += i + 1 == names.size() ? " or " : ", ";
    out += core::quoted(names[i]);
  }
  return out + "?";
}

NearestNames::NearestNames(std::string_view key)
    : key_(key), limit_(std::clamp<std::size_t>((key.size() + 2) / 3, 1, 8)) {}

void NearestNames::add(std::string_view name) {
  if (++looked_ > kMaxLooked || key_.empty() || name.empty() || key_.size() > kMaxKey || name.size() > 2 * kMaxKey)
    return;
  std::size_t distance = edit_distance(key_, name, limit_);
  // A name that ends or begins with the key, or the other way round, is likely meant: "weight", "encoder.weight".
  if (distance > limit_ && std::min(key_.size(), name.size()) >= 3 &&
      (name.ends_with(key_) || name.starts_with(key_) || key_.ends_with(name))) {
    distance = limit_;
  }
  if (distance > limit_) return;
  const auto at = std::upper_bound(kept_.begin(), kept_.end(), distance,
                                   [](std::size_t d, const auto& kept) { return d < kept.first; });
  if (kept_.size() == kMaxKept && at == kept_.end()) return;
  kept_.emplace(at, distance, std::string(name));
  if (kept_.size() > kMaxKept) kept_.pop_back();
}

std::vector<std::string> NearestNames::take() {
  std::vector<std::string> out;
  for (auto& kept : kept_) out.push_back(std::move(kept.second));
  kept_.clear();
  return out;
}

}  // namespace penstock::core
