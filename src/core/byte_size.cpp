#include "core/byte_size.h"

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

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  std::string_view unit(stopped, static_cast<std::size_t>(end - stopped));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, size] : kUnits) {
    if (unit != name) continue;
    if (number == 0 || number > std::numeric_limits<std::int64_t>::max() / size) return std::nullopt;
    return number * size;
  }
  return std::nullopt;
}

}  // namespace penstock::core
