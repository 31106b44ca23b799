#pragma once

// What requests to Amazon's stores are signed with (signature.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::io::remote {

using Digest = std::array<std::uint8_t, 32>;

/// FIPS 180-4. For signatures of requests, which are short: no faster way than the plain one is wanted.
Digest sha256(std::string_view bytes) noexcept;
/// RFC 2104.
Digest hmac_sha256(std::span<const std::uint8_t> key, std::string_view bytes);
/// In lower case.
std::string hex(std::span<const std::uint8_t> bytes);

}  // namespace penstock::io::remote
