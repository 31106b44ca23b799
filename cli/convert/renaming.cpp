#include "cli/convert/renaming.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "core/utf8.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kForm =
    "s/REGEX/TEXT/, with g (each match), i (any case) or a number (that match) behind it";

/// std::regex goes a call deeper for each character.
constexpr std::size_t kMostRenamed = 4096;

/// Stands for a byte that is no character, as in Python's surrogateescape.
constexpr char32_t kFirstByte = 0xDC00;

std::wstring characters_of(std::string_view text) {
  std::wstring out;
  while (!text.empty()) {
    if (const auto point = core::take_code_point(text)) {
      out += static_cast<wchar_t>(*point);
    } else {
      out += static_cast<wchar_t>(kFirstByte + static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string text_of(std::wstring_view characters) {
  std::string out;
  for (const wchar_t character : characters) {
    const auto point = static_cast<char32_t>(character);
    if (point >= kFirstByte && point <= kFirstByte + 0xFF) {
      out += static_cast<char>(point - kFirstByte);
    } else {
      core::append_utf8(out, point);
    }
  }
  return out;
}

/// The separator is part of the text behind a backslash.
std::vector<std::wstring> split(std::wstring_view text, wchar_t separator) {
  std::vector<std::wstring> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == L'\\' && i + 1 < text.size()) {
      if (text[i + 1] != separator) parts.back() += L'\\';
      parts.back() += text[++i];
    } else if (text[i] == separator) {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

/// The largest N of the \N in the text.
std::size_t last_group_in(std::wstring_view text) {
  std::size_t last = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != L'\\') continue;
    ++i;
    if (text[i] >= L'0' && text[i] <= L'9') last = std::max(last, static_cast<std::size_t>(text[i] - L'0'));
  }
  return last;
}

struct Flags {
  bool global = false;
  bool any_case = false;
  std::size_t first = 1;
};

Flags flags_of(std::wstring_view text) {
  Flags flags;
  std::wstring number;
  for (const wchar_t letter : text) {
    if (letter == L'g') {
      flags.global = true;
    } else if (letter == L'i' || letter == L'I') {
      flags.any_case = true;
    } else if (letter >= L'0' && letter <= L'9' && number.size() < 4) {
      number += letter;
    } else {
      throw std::invalid_argument(std::string(kForm));
    }
  }
  if (number.empty()) return flags;
  flags.first = std::stoul(number);
  if (flags.first == 0) throw std::invalid_argument(std::string(kForm));
  return flags;
}

}  // namespace

Renaming::Renaming(const std::string& text) : given_(text) {
  const std::wstring characters = characters_of(text);
  if (characters.size() < 4 || characters[0] != L's' || characters[1] == L'\\') {
    throw std::invalid_argument(std::string(kForm));
  }
  const std::vector<std::wstring> parts = split(std::wstring_view(characters).substr(2), characters[1]);
  if (parts.size() != 3) throw std::invalid_argument(std::string(kForm));
  const Flags flags = flags_of(parts[2]);
  regex_ =
      std::wregex(parts[0], std::wregex::ECMAScript | (flags.any_case ? std::wregex::icase : std::wregex::flag_type{}));
  text_ = parts[1];
  first_ = flags.first;
  global_ = flags.global;
  if (const std::size_t group = last_group_in(text_); group > regex_.mark_count()) {
    throw std::invalid_argument(core::format("no \\{} where the regular expression has {}", group,
                                             core::counted(regex_.mark_count(), "group")));
  }
}

std::string Renaming::operator()(const std::string& name) {
  if (name.size() > kMostRenamed) {
    throw Error(ErrorCode::kLimit, core::format("names of more than {} bytes are not renamed", kMostRenamed),
                {.tensor = name.substr(0, 80)});
  }
  const std::wstring characters = characters_of(name);
  std::wstring out;
  auto rest = characters.begin();
  std::size_t number = 0;
  for (std::wsregex_iterator match(characters.begin(), characters.end(), regex_), end; match != end; ++match) {
    ++number;
    if (number < first_) continue;
    out.append(rest, match->prefix().second);
    match->format(std::back_inserter(out), text_, std::regex_constants::format_sed);
    rest = match->suffix().first;
    if (!global_) break;
  }
  out.append(rest, characters.end());
  std::string renamed = text_of(out);
  changes_any_ |= renamed != name;
  return renamed;
}

void Renaming::tell_unused() const {
  if (!changes_any_) print_error(core::format("--rename {}: it changes no name", core::quoted(given_)));
}

std::string check_rename(const std::string& text) {
  try {
    const Renaming renaming(text);
    return {};
  } catch (const std::regex_error& error) {
    return core::format("a regular expression of ECMAScript ({})", error.what());
  } catch (const std::invalid_argument& expected) {
    return expected.what();
  }
}

}  // namespace penstock::cli
