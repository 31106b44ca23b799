#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::core {

/// FNV-1a of what was hashed so far and `text` behind it. The same on every machine and in every version, unlike
/// std::hash, so that it may be part of what is kept. Who can choose the text can choose the hash.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t before = 0xcbf29ce484222325) noexcept {
  for (const char c : text) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return before;
}

}  // namespace penstock::core
