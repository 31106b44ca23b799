#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::core {

/// A size as people write it, "5GB", "1.5 GB", "500 MiB", "4096": powers of 1000 (kB, MB, GB, TB) and of 1024 (KiB,
/// MiB, GiB, TiB). Nothing for what is no size, for 0, for parts of a byte and for what does not fit.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

}  // namespace penstock::core
