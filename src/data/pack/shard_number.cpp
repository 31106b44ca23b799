#include "data/pack/shard_number.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "core/format.h"
#include "core/text.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr std::string_view kNumber = "penstock.shard";
constexpr std::string_view kCount = "penstock.shards";
constexpr std::size_t kNamedInErrors = 5;

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end && out >= 0 ? std::optional(out) : std::nullopt;
}

/// Where nobody can be asked, a shard that was not found is missing.
bool is_there(const std::string& path) {
  try {
    return io::output_exists(path);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string shard_name(const ShardNumber& shard, std::string_view extension) {
  constexpr std::size_t kDigits = 5;
  const std::size_t width = std::max(kDigits, std::to_string(shard.count - 1).size());
  return core::format("{:0{}}{}", shard.number, width, extension);
}

std::map<std::string, std::string> metadata_of(const ShardNumber& shard) {
  return {{std::string(kNumber), std::to_string(shard.number)}, {std::string(kCount), std::to_string(shard.count)}};
}

std::optional<ShardNumber> shard_number_of(const std::map<std::string, std::string>& metadata,
                                           const std::string& path) {
  const auto number = metadata.find(std::string(kNumber));
  const auto count = metadata.find(std::string(kCount));
  if (number == metadata.end() && count == metadata.end()) return std::nullopt;
  const auto of = number == metadata.end() ? std::nullopt : number_in(number->second);
  const auto all = count == metadata.end() ? std::nullopt : number_in(count->second);
  if (of && all && *of < *all) return ShardNumber{*of, *all};
  throw Error(ErrorCode::kCorrupt,
              core::format("the metadata {} and {} do not say which shard of how many it is; pack the samples again",
                           kNumber, kCount),
              {.path = path});
}

void FoundShards::add(const std::string& path, const ShardNumber& shard) {
  numbers_[{path.substr(0, path.rfind('/') + 1), shard.count}].push_back(shard.number);
}

void FoundShards::require_all() const {
  for (const auto& [packing, found] : numbers_) {
    std::vector<std::int64_t> numbers = found;
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::string> missing;
    auto next = numbers.begin();
    for (std::int64_t i = 0; i < packing.count && missing.size() < kNamedInErrors; ++i) {
      next = std::find_if(next, numbers.end(), [i](std::int64_t number) { return number >= i; });
      if (next != numbers.end() && *next == i) continue;
      const std::string name = shard_name({i, packing.count});
      if (!is_there(packing.folder + name)) missing.push_back(core::quoted(name));
    }
    if (missing.empty()) continue;
    throw Error(ErrorCode::kNotFound,
                core::format("of the {} shards that were packed here, {} {} missing{}; copy what is missing, or name "
                             "the files to be read",
                             packing.count, fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are",
                             missing.size() == kNamedInErrors ? ", if not more" : ""),
                {.path = packing.folder});
  }
}

}  // namespace penstock::data
