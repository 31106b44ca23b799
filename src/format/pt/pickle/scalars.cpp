// Pickles write integers of any size as decimal text or as little-endian two's complement, and text in the encodings of
// Python 2 and 3. Large integers are converted with arithmetic of our own on 64-bit limbs.

#include "format/pt/pickle/scalars.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/parse_number.h"
#include "format/text/utf8.h"

namespace penstock::format::pickle {

namespace {

using Limbs = std::vector<std::uint64_t>;  // least significant first

constexpr std::uint64_t kChunk = 1'000'000'000'000'000'000;  // 18 digits, divided off at once
constexpr std::size_t kChunkDigits = 18;

__extension__ using Wide = unsigned __int128;

/// Divides in place and gives the remainder.
std::uint64_t divide(Limbs& limbs, std::uint64_t by) {
  Wide rest = 0;
  for (std::size_t i = limbs.size(); i-- > 0;) {
    rest = (rest << 64) | limbs[i];
    limbs[i] = static_cast<std::uint64_t>(rest / by);
    rest %= by;
  }
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  return static_cast<std::uint64_t>(rest);
}

void multiply_add(Limbs& limbs, std::uint64_t by, std::uint64_t plus) {
  Wide carry = plus;
  for (std::uint64_t& limb : limbs) {
    carry += static_cast<Wide>(limb) * by;
    limb = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  if (carry != 0) limbs.push_back(static_cast<std::uint64_t>(carry));
}

void negate(Limbs& limbs) {
  bool carry = true;
  for (std::uint64_t& limb : limbs) {
    limb = ~limb + (carry ? 1 : 0);
    carry = carry && limb == 0;
  }
}

/// The number that `digits` characters at `at` write in `base`, if all of them are digits.
std::optional<std::uint32_t> digits_at(std::string_view text, std::size_t at, std::size_t digits, int base) {
  if (at > text.size() || text.size() - at < digits) return std::nullopt;
  std::uint32_t value = 0;
  const char* first = text.data() + at;
  const auto [end, error] = std::from_chars(first, first + digits, value, base);
  if (error != std::errc{} || end != first + digits) return std::nullopt;
  return value;
}

constexpr bool is_high_surrogate(std::uint32_t point) { return point >= 0xD800 && point < 0xDC00; }
constexpr bool is_low_surrogate(std::uint32_t point) { return point >= 0xDC00 && point < 0xE000; }

/// Decodes the escape whose backslash is at `at`; gives the position behind it.
std::optional<std::size_t> unescape(std::string_view body, std::size_t at, std::string& out) {
  if (at + 1 >= body.size()) return std::nullopt;
  static constexpr std::string_view kFrom = "\\'\"abfnrtv";
  static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
  const char c = body[at + 1];
  if (const auto simple = kFrom.find(c); simple != std::string_view::npos) {
    out += kTo[simple];
    return at + 2;
  }
  if (c == 'x') {
    const auto value = digits_at(body, at + 2, 2, 16);
    if (!value) return std::nullopt;
    out += static_cast<char>(*value);
    return at + 4;
  }
  std::size_t digits = 0;
  while (digits < 3 && at + 1 + digits < body.size() && body[at + 1 + digits] >= '0' && body[at + 1 + digits] <= '7') {
    ++digits;
  }
  if (digits > 0) {
    out += static_cast<char>(*digits_at(body, at + 1, digits, 8) & 0xFF);
    return at + 1 + digits;
  }
  out += body.substr(at, 2);
  return at + 2;
}

}  // namespace

std::optional<std::int64_t> parse_int64(std::string_view text) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);
  return core::parse_number<std::int64_t>(text);
}

std::optional<std::string> normal_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || !std::all_of(text.begin(), text.end(), core::is_digit)) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  std::string out;
  if (negative && text != "0") out += '-';
  return out.append(text);
}

std::string decimal_of_bytes(std::span<const std::byte> little_endian) {
  if (little_endian.empty()) return "0";
  const bool negative = (std::to_integer<unsigned>(little_endian.back()) & 0x80U) != 0;
  Limbs limbs((little_endian.size() + 7) / 8, negative ? ~std::uint64_t{0} : 0);
  for (std::size_t i = 0; i < little_endian.size(); ++i) {
    const std::size_t shift = 8 * (i % 8);
    limbs[i / 8] &= ~(std::uint64_t{0xFF} << shift);
    limbs[i / 8] |= std::to_integer<std::uint64_t>(little_endian[i]) << shift;
  }
  if (negative) negate(limbs);
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  std::string reversed;
  while (!limbs.empty()) {
    std::uint64_t chunk = divide(limbs, kChunk);
    for (std::size_t i = 0; i < kChunkDigits && (chunk != 0 || !limbs.empty()); ++i, chunk /= 10) {
      reversed += static_cast<char>('0' + chunk % 10);
    }
  }
  if (reversed.empty()) return "0";
  if (negative) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

std::string bytes_of_decimal(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  if (negative) decimal.remove_prefix(1);
  Limbs limbs;
  for (const char c : decimal) multiply_add(limbs, 10, static_cast<std::uint64_t>(c - '0'));
  limbs.push_back(0);  // room for the sign
  if (negative) negate(limbs);
  std::string bytes(limbs.size() * 8, '\0');
  std::memcpy(bytes.data(), limbs.data(), bytes.size());
  const char fill = negative ? '\xFF' : '\0';
  while (bytes.size() > 1 && bytes.back() == fill && ((bytes[bytes.size() - 2] ^ fill) & 0x80) == 0) bytes.pop_back();
  if (bytes.size() == 1 && bytes[0] == '\0') bytes.clear();
  return bytes;
}

std::optional<std::string> unquote(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back() || (literal[0] != '\'' && literal[0] != '"')) {
    return std::nullopt;
  }
  const std::string_view body = literal.substr(1, literal.size() - 2);
  std::string out;
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      out += body[i++];
    } else if (const auto next = unescape(body, i, out)) {
      i = *next;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> from_raw_unicode_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::uint32_t high = 0;  // perhaps the first half of a pair, as Python 2 writes them
  const auto take_high = [&] {
    if (high != 0) append_utf8(out, std::exchange(high, 0));
  };
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t point = static_cast<unsigned char>(text[i]);
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == 'u' || next == 'U') {
      const std::size_t digits = next == 'u' ? 4 : 8;
      const auto value = digits_at(text, i + 2, digits, 16);
      if (!value || *value > 0x10FFFF) return std::nullopt;
      point = *value;
      i += 2 + digits;
    } else if (next != '\0') {
      take_high();
      out += '\\';  // a pair of characters that means itself
      append_utf8(out, static_cast<unsigned char>(next));
      i += 2;
      continue;
    } else {
      ++i;
    }
    if (high != 0 && is_low_surrogate(point)) {
      point = 0x10000 + ((std::exchange(high, 0) - 0xD800) << 10) + (point - 0xDC00);
    }
    take_high();
    if (is_high_surrogate(point)) {
      high = point;
    } else {
      append_utf8(out, point);
    }
  }
  take_high();
  return out;
}

}  // namespace penstock::format::pickle
