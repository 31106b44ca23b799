#include "core/byte_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

namespace penstock::core {
namespace {

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 11> kUnits{{{"", 1},
                                                                             {"B", 1},
                                                                             {"kB", 1000},
                                                                             {"KB", 1000},
                                                                             {"MB", 1000'000},
                                                                             {"GB", 1000'000'000},
                                                                             {"TB", 1000'000'000'000},
                                                                             {"KiB", 1ULL << 10},
                                                                             {"MiB", 1ULL << 20},
                                                                             {"GiB", 1ULL << 30},
                                                                             {"TiB", 1ULL << 40}}};

/// So many tenths, hundredths ... of a unit, as these digits say; a part of a byte is left out.
std::uint64_t part_of(std::uint64_t size, std::string_view digits) noexcept {
  // Of 18 digits and 2^40 bytes the product fits in 128 bits, and further digits are less than a byte.
  __extension__ using Wide = unsigned __int128;
  Wide numerator = 0;
  Wide denominator = 1;
  for (const char digit : digits.substr(0, 18)) {
    numerator = numerator * 10 + static_cast<unsigned>(digit - '0');
    denominator *= 10;
  }
  return static_cast<std::uint64_t>(numerator * size / denominator);
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view unit = text.substr(digits);
  std::string_view fraction;
  if (unit.starts_with('.')) {
    fraction = unit.substr(1, std::min(unit.find_first_not_of("0123456789", 1), unit.size()) - 1);
    unit.remove_prefix(1 + fraction.size());
    if (fraction.empty()) return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (error != std::errc{}) return std::nullopt;
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, size] : kUnits) {
    if (unit != name) continue;
    if (size == 1 && !fraction.empty()) return std::nullopt;  // whoever forgets "GB" does not mean a byte and a half
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (number > kMost / size) return std::nullopt;
    const std::uint64_t bytes = number * size + part_of(size, fraction);
    return bytes == 0 || bytes > kMost ? std::nullopt : std::optional(bytes);
  }
  return std::nullopt;
}

}  // namespace penstock::core
