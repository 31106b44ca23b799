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
  const std::size_t name = path.rfind('/') + 1;
  found_[{path.substr(0, name), shard.count}][shard.number].push_back(path.substr(name));
  paths_.insert(path);
}

void FoundShards::require_all() const {
  for (const auto& [packing, found] : found_) {
    require_each(packing, found);
    require_even(packing, found);
  }
}

void FoundShards::require_each(const Packing& packing, const Names& found) const {
  std::vector<std::string> missing;
  auto next = found.begin();
  for (std::int64_t i = 0; i < packing.count && missing.size() < kNamedInErrors; ++i) {
    if (next != found.end() && next->first == i) {
      ++next;
      continue;
    }
    const std::string name = shard_name({i, packing.count});
    if (paths_.contains(packing.folder + name)) {
      missing.push_back(core::format("{} (the file of that name is another shard)", core::quoted(name)));
    } else if (!is_there(packing.folder + name)) {
      missing.push_back(core::quoted(name));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kNotFound,
              core::format("of the {} shards that were packed here, {} {} missing{}; copy what is missing, or name "
                           "the files to be read",
                           packing.count, fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are",
                           missing.size() == kNamedInErrors ? ", if not more" : ""),
              {.path = packing.folder});
}

void FoundShards::require_even(const Packing& packing, const Names& found) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto [least, most] = std::minmax_element(found.begin(), found.end(), fewer);
  if (least->second.size() == most->second.size()) return;
  throw Error(ErrorCode::kCorrupt,
              core::format("the files {} and {} are both shard {} of {}, and shard {} is there less often: remove the "
                           "copy, or copy what is missing",
                           core::quoted(most->second.front()), core::quoted(most->second.back()), most->first,
                           packing.count, least->first),
              {.path = packing.folder});
}

}  // namespace penstock::data
