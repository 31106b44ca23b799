#include "core/utf8.h"

#include <cstddef>
#include <cstdint>

namespace penstock::core {

namespace {

struct Lead {
  std::size_t followers;
  std::uint32_t bits;
  std::uint32_t smallest;
};

Lead lead_of(unsigned char byte) noexcept {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, byte & 0x1Fu, 0x80};
  if (byte >= 0xE0 && byte <= 0xEF) return {2, byte & 0x0Fu, 0x800};
  if (byte >= 0xF0 && byte <= 0xF4) return {3, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

bool is_well_formed(std::string_view text, bool with_surrogates) noexcept {
  while (!text.empty()) {
    const FirstCodePoint first = first_code_point(text);
    if (first.bytes == 0 || (!with_surrogates && first.is_surrogate())) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

}  // namespace

FirstCodePoint first_code_point(std::string_view text) noexcept {
  if (text.empty()) return {};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const Lead lead = lead_of(first);
  if (lead.followers == 0 || text.size() - 1 < lead.followers) return {};
  std::uint32_t code_point = lead.bits;
  for (std::size_t i = 1; i <= lead.followers; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (next & 0x3Fu);
  }
  if (code_point < lead.smallest || code_point > 0x10FFFF) return {};
  return {code_point, lead.followers + 1};
}

std::optional<char32_t> take_code_point(std::string_view& utf8) noexcept {
  const FirstCodePoint first = first_code_point(utf8);
  if (first.bytes == 0 || first.is_surrogate()) return std::nullopt;
  utf8.remove_prefix(first.bytes);
  return first.value;
}

bool is_utf8(std::string_view text) noexcept { return is_well_formed(text, false); }

bool is_utf8_with_surrogates(std::string_view text) noexcept { return is_well_formed(text, true); }

void append_utf8(std::string& text, char32_t code_point) {
  const auto code = static_cast<std::uint32_t>(code_point);
  const auto push = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | code >> 6);
    push(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12);
    push(0x80 | (code >> 6 & 0x3F));
    push(0x80 | (code & 0x3F));
  } else {
    push(0xF0 | code >> 18);
    push(0x80 | (code >> 12 & 0x3F));
    push(0x80 | (code >> 6 & 0x3F));
    push(0x80 | (code & 0x3F));
  }
}

}  // namespace penstock::core
