// Scans the literals in a `.npy` header. It is written by hand because running Python's parser on a file is out of the
// question, and it is strict because two readers of a header must not see different things in it.

#include "format/text/python_literal.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "format/text/utf8.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

bool is_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }
bool is_word(char c) noexcept { return core::is_letter_or_digit(c) || c == '_'; }
bool is_ascii(char c) noexcept { return static_cast<signed char>(c) >= 0; }

/// `name` without NumPy's module in front.
std::string_view without_module(std::string_view name) noexcept {
  for (const std::string_view module : {"np.", "numpy."}) {
    if (name.starts_with(module)) return name.substr(module.size());
  }
  return name;
}

constexpr std::string_view kStringClasses[] = {"str_", "str"};
constexpr std::string_view kBooleanClasses[] = {"bool_", "bool"};
constexpr std::string_view kIntegerClasses[] = {"int8",   "int16",  "int32",    "int64", "uint8",
                                                "uint16", "uint32", "uint64",   "intp",  "intc",
                                                "int_",   "uintp",  "longlong", "int",   "long"};

/// 16 or more for what is no digit.
unsigned digit_of(char c) noexcept {
  const int digit = core::hex_digit(c);
  return digit < 0 ? 16 : static_cast<unsigned>(digit);
}

}  // namespace

void LiteralScanner::fail(const std::string& message) const {
  throw Error(ErrorCode::kCorrupt, message, {{}, offset()});
}

char LiteralScanner::peek() noexcept {
  while (!at_end() && is_space(text_[at_])) ++at_;
  return at_end() ? '\0' : text_[at_];
}

bool LiteralScanner::accept(char c) noexcept {
  if (peek() != c || at_end()) return false;
  ++at_;
  return true;
}

void LiteralScanner::expect(char c) {
  if (accept(c)) return;
  const std::string found = at_end() ? "its end" : core::quoted(text_.substr(at_, 1));
  fail(core::format("the header has {} where '{}' must be", found, c));
}

void LiteralScanner::expect_end() {
  peek();
  if (!at_end()) fail(core::format("the header goes on with {} after the dict", core::quoted(text_.substr(at_, 20))));
}

bool LiteralScanner::more_items(char close) {
  if (accept(close)) return false;
  expect(',');
  return !accept(close);
}

std::string_view LiteralScanner::word() const noexcept {
  const std::string_view rest = text_.substr(at_);
  const auto end = std::find_if(rest.begin(), rest.end(), [](char c) { return !is_word(c) && c != '.'; });
  return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
}

bool LiteralScanner::accept_call(std::span<const std::string_view> names) noexcept {
  peek();
  const std::string_view name = word();
  if (name.empty() || at_ + name.size() == text_.size() || text_[at_ + name.size()] != '(') return false;
  if (std::find(names.begin(), names.end(), without_module(name)) == names.end()) return false;
  at_ += name.size() + 1;
  return true;
}

std::string_view LiteralScanner::string() {
  if (const char first = peek(); first == '\'' || first == '"') return plain_string();
  const bool call = accept_call(kStringClasses);
  const std::string_view value = plain_string();
  if (call) expect(')');
  return value;
}

bool LiteralScanner::boolean() {
  if (const char first = peek(); first == 'T' || first == 'F') return plain_boolean();
  const bool call = accept_call(kBooleanClasses);
  const bool value = plain_boolean();
  if (call) expect(')');
  return value;
}

std::int64_t LiteralScanner::size() {
  if (core::is_digit(peek())) return plain_size();
  const bool call = accept_call(kIntegerClasses);
  const std::int64_t value = plain_size();
  if (call) expect(')');
  return value;
}

std::string_view LiteralScanner::plain_string() {
  char quote = peek();
  if (quote == 'u' || quote == 'U') {
    ++at_;
    quote = at_end() ? '\0' : text_[at_];
  }
  if (quote != '\'' && quote != '"') fail("the header has something else where a string must be");
  if (text_.substr(at_, 3) == std::string(3, quote)) fail("a string in the header has three quotes where one must be");
  const std::size_t begin = ++at_;
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == quote) return text_.substr(begin, at_++ - begin);
    if (c == '\\' || c == '\n' || !is_ascii(c)) return decode(quote, begin);
  }
  fail("a string in the header does not end");
}

/// The slow path of string(): from `begin` up to here nothing needs decoding.
std::string_view LiteralScanner::decode(char quote, std::size_t begin) {
  decoded_ = text_.substr(begin, at_ - begin);
  while (!at_end()) {
    const char c = text_[at_++];
    if (c == quote) return decoded_;
    if (c == '\n') fail("a string in the header runs over the end of its line");
    if (c == '\\') {
      append_escape();
    } else {
      append_plain(c);
    }
  }
  fail("a string in the header does not end");
}

void LiteralScanner::append_plain(char c) {
  if (encoding_ == Encoding::kLatin1) {
    append_code(static_cast<unsigned char>(c));
  } else {
    decoded_ += c;
  }
}

void LiteralScanner::append_escape() {
  static constexpr std::string_view kNames = "\\'\"abfnrtv";
  static constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
  if (at_end()) fail("a string in the header does not end");
  const char c = text_[at_];
  if (c >= '0' && c <= '7') return append_code(digits(3, 1, 8));
  ++at_;
  if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
    decoded_ += kValues[known];
  } else if (c == 'x') {
    append_code(digits(2, 2, 16));
  } else if (c == 'u') {
    append_code(digits(4, 4, 16));
  } else if (c == 'U') {
    append_code(digits(8, 8, 16));
  } else if (c == 'N') {
    fail("a string in the header has a \\N{...} escape, which is not read");
  } else if (c != '\n') {
    // Python keeps the backslash of an escape that it does not know.
    decoded_ += '\\';
    append_plain(c);
  }
}

void LiteralScanner::append_code(char32_t code_point) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    fail("a string in the header has an escape that is not a character");
  }
  append_utf8(decoded_, code_point);
}

char32_t LiteralScanner::digits(std::size_t most, std::size_t least, unsigned radix) {
  std::uint64_t value = 0;
  std::size_t count = 0;
  for (; count < most && !at_end() && digit_of(text_[at_]) < radix; ++count, ++at_) {
    value = value * radix + digit_of(text_[at_]);
  }
  if (count < least) fail("a string in the header has an escape without its digits");
  return value > 0x10FFFF ? char32_t{0x110000} : static_cast<char32_t>(value);
}

bool LiteralScanner::plain_boolean() {
  peek();
  const std::string_view found = word();
  const std::string_view value = without_module(found);
  const bool is_numpys = value.size() != found.size();
  for (const auto& [name, is_true] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
    if (value != name && !(is_numpys && value.starts_with(name) && value.substr(name.size()) == "_")) continue;
    at_ += found.size();
    return is_true;
  }
  fail("the header has something else where True or False must be");
}

std::int64_t LiteralScanner::plain_size() {
  const char first = peek();
  if (first == '-') fail("a dimension in the header is negative");
  if (!core::is_digit(first)) fail("the header has something else where a dimension (an integer) must be");
  const char* const begin = text_.data() + at_;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("a dimension in the header does not fit in 63 bits");
  if (first == '0' && value != 0) fail("a dimension in the header begins with 0");
  at_ += static_cast<std::size_t>(end - begin);
  if (!at_end() && text_[at_] == 'L') {
    python2_ = true;
    ++at_;
  }
  if (!at_end() && (is_word(text_[at_]) || text_[at_] == '.')) fail("a dimension in the header is not a plain integer");
  return value;
}

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_ascii(c) && (c < ' ' || c == 0x7F)) {
      out += core::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + quote;
}

}  // namespace penstock::format
