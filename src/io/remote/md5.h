#pragma once

// The checksum of Google's store, and what ETags are made of.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::io::remote {

/// RFC 1321. It proves nothing about who sent something: stores want it as a checksum, and make ETags of it.
std::array<std::uint8_t, 16> md5(std::span<const std::byte> bytes) noexcept;

}  // namespace penstock::io::remote
