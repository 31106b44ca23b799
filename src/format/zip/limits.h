#pragma once

// What a zip archive may ask for, which both parts of its reader hold it to: the end record and the directory.

#include <cstdint>

namespace penstock::format {

/// Budgets against hostile archives; beyond them kLimit.
struct ZipLimits {
  std::uint64_t max_entries = std::uint64_t{1} << 24;
  std::uint64_t max_directory_bytes = std::uint64_t{1} << 30;
  /// Of all members together, after inflating. Members whose sizes exceed what deflate can do are refused anyway.
  std::uint64_t max_inflated_bytes = std::uint64_t{1} << 44;
  /// No limit: how much of the front of each member the format looks at, which is read along with the members' headers
  /// where they are asked for at once.
  std::uint64_t front_bytes = 0;
};

}  // namespace penstock::format
