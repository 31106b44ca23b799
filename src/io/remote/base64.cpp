#include "io/remote/base64.h"

namespace penstock::io::remote {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t n) { return i + n < bytes.size() ? std::uint32_t{bytes[i + n]} : 0U; };
    const std::uint32_t three = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) out += kLetters[three >> shift & 63];
  }
  for (std::size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) out[out.size() - 1 - i] = '=';
  return out;
}

std::optional<std::vector<std::uint8_t>> base64_bytes(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::uint8_t> out;
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < text.size() - padding; ++i) {
    const std::size_t value = kLetters.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 != 0) out.push_back(static_cast<std::uint8_t>(held >> (6 - i % 4 * 2)));
  }
  return out;
}

}  // namespace penstock::io::remote
