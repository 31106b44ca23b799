#include "format/utf8.h"

#include <cstddef>
#include <cstdint>

namespace penstock::format {

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

bool is_scalar(std::uint32_t code_point) noexcept {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const Lead lead = lead_of(first);
    if (lead.followers == 0 || text.size() - i < lead.followers) return false;
    std::uint32_t code_point = lead.bits;
    for (std::size_t k = 0; k < lead.followers; ++k) {
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xC0) != 0x80) return false;
      code_point = code_point << 6 | (next & 0x3Fu);
    }
    if (code_point < lead.smallest || !is_scalar(code_point)) return false;
  }
  return true;
}

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

}  // namespace penstock::format
