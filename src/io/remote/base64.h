#pragma once

// Base64 (RFC 4648), in which headers have checksums and Azure's accounts their keys.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::io::remote {

std::string base64(std::span<const std::uint8_t> bytes);
/// Nothing for what is none: other characters, a cut end, or none at all.
std::optional<std::vector<std::uint8_t>> base64_bytes(std::string_view text);

}  // namespace penstock::io::remote
