#pragma once

// Error messages count things, so they need the singular and the plural of a word.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/format.h"

namespace penstock::core {

/// "1 byte follows", "2 bytes follow".
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return core::format("{} {}", count, count == 1 ? one : many);
}

/// "1 object", "2 objects".
inline std::string counted(std::uint64_t count, std::string_view what) {
  return core::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace penstock::core
