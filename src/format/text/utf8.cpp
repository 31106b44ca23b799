// UTF-8 and code page 437, in which zip archives write names.

#include "format/text/utf8.h"

#include <array>
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

bool is_surrogate(std::uint32_t code_point) noexcept { return code_point >= 0xD800 && code_point <= 0xDFFF; }

bool is_well_formed(std::string_view text, bool with_surrogates) noexcept {
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
    if (code_point < lead.smallest || code_point > 0x10FFFF) return false;
    if (!with_surrogates && is_surrogate(code_point)) return false;
  }
  return true;
}

/// The upper half.
constexpr std::array<char16_t, 128> kCodePage437 = {
    0x00C7, 0x00FC, 0x00E9, 0x00E2, 0x00E4, 0x00E0, 0x00E5, 0x00E7, 0x00EA, 0x00EB, 0x00E8, 0x00EF, 0x00EE,
    0x00EC, 0x00C4, 0x00C5, 0x00C9, 0x00E6, 0x00C6, 0x00F4, 0x00F6, 0x00F2, 0x00FB, 0x00F9, 0x00FF, 0x00D6,
    0x00DC, 0x00A2, 0x00A3, 0x00A5, 0x20A7, 0x0192, 0x00E1, 0x00ED, 0x00F3, 0x00FA, 0x00F1, 0x00D1, 0x00AA,
    0x00BA, 0x00BF, 0x2310, 0x00AC, 0x00BD, 0x00BC, 0x00A1, 0x00AB, 0x00BB, 0x2591, 0x2592, 0x2593, 0x2502,
    0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557, 0x255D, 0x255C, 0x255B, 0x2510, 0x2514,
    0x2534, 0x252C, 0x251C, 0x2500, 0x253C, 0x255E, 0x255F, 0x255A, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550,
    0x256C, 0x2567, 0x2568, 0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256B, 0x256A, 0x2518, 0x250C,
    0x2588, 0x2584, 0x258C, 0x2590, 0x2580, 0x03B1, 0x00DF, 0x0393, 0x03C0, 0x03A3, 0x03C3, 0x00B5, 0x03C4,
    0x03A6, 0x0398, 0x03A9, 0x03B4, 0x221E, 0x03C6, 0x03B5, 0x2229, 0x2261, 0x00B1, 0x2265, 0x2264, 0x2320,
    0x2321, 0x00F7, 0x2248, 0x00B0, 0x2219, 0x00B7, 0x221A, 0x207F, 0x00B2, 0x25A0, 0x00A0,
};

}  // namespace

bool is_utf8(std::string_view text) noexcept { return is_well_formed(text, false); }

bool is_utf8_with_surrogates(std::string_view text) noexcept { return is_well_formed(text, true); }

std::string from_cp437(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    append_utf8(out, byte < 0x80 ? byte : kCodePage437[byte - 0x80]);
  }
  return out;
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
