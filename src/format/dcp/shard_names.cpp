#include "format/dcp/shard_names.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

struct ShardName {
  std::uint32_t rank = 0;
  std::uint32_t number = 0;
  std::uint32_t count = 0;
};

/// Takes `lead` and the digits behind it off the text.
bool take(std::string_view& text, std::string_view lead, std::uint32_t& out) {
  if (!text.starts_with(lead)) return false;
  text.remove_prefix(lead.size());
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return error == std::errc() && out > 0;
}

std::optional<ShardName> parse(std::string_view name) {
  ShardName out;
  const bool fits =
      take(name, "shard-", out.rank) && take(name, "-model-", out.number) && take(name, "-of-", out.count);
  return fits && name == ".safetensors" ? std::optional(out) : std::nullopt;
}

[[noreturn]] void refuse(const std::string& what, const std::string& folder) {
  throw Error(ErrorCode::kNotFound, core::format("{}: copy what is missing from where the checkpoint was saved", what),
              {folder});
}

/// The first of 1, 2, ... that is not in the set; nothing where all up to `last` are.
std::optional<std::uint32_t> first_gap(const std::set<std::uint32_t>& found, std::uint32_t last) {
  std::uint32_t next = 1;
  for (const std::uint32_t number : found) {
    if (number != next) break;
    ++next;
  }
  return next <= last ? std::optional(next) : std::nullopt;
}

}  // namespace

void require_all_shards(const std::vector<std::string>& names, const std::string& folder) {
  std::set<std::uint32_t> ranks;
  std::set<std::uint32_t> numbers;
  std::uint32_t count = 0;
  for (const std::string& name : names) {
    const std::optional<ShardName> shard = parse(name);
    if (!shard) continue;
    if (count != 0 && shard->count != count) {
      refuse(core::format("there are shards of {} files a rank and of {}, which are of two saves", count, shard->count),
             folder);
    }
    count = shard->count;
    ranks.insert(shard->rank);
    numbers.insert(shard->number);
  }
  if (ranks.empty()) return;
  if (const auto rank = first_gap(ranks, *ranks.rbegin())) {
    refuse(core::format("the shards called shard-{:05}-... are missing, and there are some up to shard-{:05}", *rank,
                        *ranks.rbegin()),
           folder);
  }
  if (const auto number = first_gap(numbers, count)) {
    refuse(core::format("the shards called ...-model-{:05}-of-{:05} are missing", *number, count), folder);
  }
}

}  // namespace penstock::format::dcp
