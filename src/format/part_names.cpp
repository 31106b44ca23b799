#include "format/part_names.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::string_view kOf = "-of-";
constexpr std::string_view kDigits = "0123456789";

struct PartName {
  std::string stem;  ///< with the '-' at its end
  std::string end;   ///< from the '-' behind the number on
  std::size_t digits = 0;
  std::uint32_t number = 0;
  std::uint32_t count = 0;
};

bool parse_all(std::string_view text, std::uint32_t& out) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && at == text.data() + text.size();
}

std::optional<PartName> parse_part(std::string_view name) {
  const std::size_t of = name.rfind(kOf);
  if (of == name.npos) return std::nullopt;
  const std::string_view behind = name.substr(of + kOf.size());
  const std::string_view count = behind.substr(0, behind.find_first_not_of(kDigits));
  const std::string_view front = name.substr(0, of);
  const std::size_t dash = front.find_last_not_of(kDigits);
  if (dash == front.npos || front[dash] != '-') return std::nullopt;
  PartName out{std::string(front.substr(0, dash + 1)), std::string(name.substr(of)), of - dash - 1};
  const bool fits = parse_all(front.substr(dash + 1), out.number) && parse_all(count, out.count);
  return fits && out.number <= out.count ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

void require_all_parts(const std::vector<std::string>& names, const std::string& folder) {
  struct Parts {
    std::set<std::uint32_t> numbers;
    std::uint32_t count = 0;
    std::size_t digits = 0;
  };
  std::map<std::pair<std::string, std::string>, Parts> things;
  for (const std::string& name : names) {
    const std::optional<PartName> part = parse_part(name);
    if (!part) continue;
    Parts& parts = things[{part->stem, part->end}];
    parts.numbers.insert(part->number);
    parts.count = part->count;
    parts.digits = part->digits;
  }
  for (const auto& [name, parts] : things) {
    if (parts.numbers.size() >= parts.count) continue;
    std::uint32_t next = parts.numbers.contains(0) ? 0 : 1;
    for (const std::uint32_t number : parts.numbers) next += number == next ? 1 : 0;
    const std::string missing = core::format("{}{:0{}}{}", name.first, next, parts.digits, name.second);
    throw Error(ErrorCode::kNotFound,
                core::format("{} of the {} files whose names end in {} are there, and {} is missing; fetch it, or name "
                             "the files to be read",
                             parts.numbers.size(), parts.count, core::quoted(name.second), core::quoted(missing)),
                {.path = folder});
  }
}

}  // namespace penstock::format
