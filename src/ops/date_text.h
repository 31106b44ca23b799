#pragma once

// Dates of NumPy as text, for elements.h.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace penstock::ops {

/// NumPy's "not a time".
inline constexpr std::int64_t kNaT = std::numeric_limits<std::int64_t>::min();

/// A datetime64 as NumPy writes it, as exactly as its unit: "2024-01-02", "2024-01-02T03:04:05.123", "NaT". `unit` is
/// what stands in the brackets of its type: "D", "25us". An integer where there is no unit.
std::string date_text(std::int64_t value, std::string_view unit);

}  // namespace penstock::ops
