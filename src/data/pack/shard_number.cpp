#include "data/pack/shard_number.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr std::string_view kNumber = "penstock.shard";
constexpr std::string_view kCount = "penstock.shards";
constexpr std::string_view kPacking = "penstock.packing";
constexpr std::string_view kBefore = "penstock.before";
constexpr std::string_view kThrough = "penstock.through";
constexpr std::size_t kNamedInErrors = 5;

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t out = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end && out >= 0 ? std::optional(out) : std::nullopt;
}

std::string text_at(const std::map<std::string, std::string>& metadata, std::string_view key) {
  const auto found = metadata.find(std::string(key));
  return found == metadata.end() ? std::string() : found->second;
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
  return {{std::string(kNumber), std::to_string(shard.number)},
          {std::string(kCount), std::to_string(shard.count)},
          {std::string(kPacking), shard.packing},
          {std::string(kBefore), shard.before},
          {std::string(kThrough), shard.through}};
}

std::optional<ShardNumber> shard_number_of(const std::map<std::string, std::string>& metadata,
                                           const std::string& path) {
  const auto number = metadata.find(std::string(kNumber));
  const auto count = metadata.find(std::string(kCount));
  if (number == metadata.end() && count == metadata.end()) return std::nullopt;
  const auto of = number == metadata.end() ? std::nullopt : number_in(number->second);
  const auto all = count == metadata.end() ? std::nullopt : number_in(count->second);
  if (of && all && *of < *all) {
    return ShardNumber{*of, *all, text_at(metadata, kPacking), text_at(metadata, kBefore), text_at(metadata, kThrough)};
  }
  throw Error(ErrorCode::kCorrupt,
              core::format("the metadata {} and {} do not say which shard of how many it is; pack the samples again",
                           kNumber, kCount),
              {.path = path});
}

void FoundShards::add(const std::string& path, const ShardNumber& shard) {
  const std::size_t name = path.rfind('/') + 1;
  Files& files = found_[{path.substr(0, name), shard.count, shard.packing}];
  files[shard.number].push_back({path.substr(name), shard.before, shard.through});
  packings_.emplace(path, shard.packing);
}

void FoundShards::require_all() const {
  for (const Error& fault : faults()) throw fault;
}

std::vector<Error> FoundShards::faults() const {
  std::vector<std::pair<std::size_t, Error>> found_faults;
  for (const auto& [packing, found] : found_) {
    try {
      require_each(packing, found);
      require_even(packing, found);
      require_chain(packing, found);
    } catch (const Error& error) {
      found_faults.emplace_back(found.size(), error);
    }
  }
  std::stable_sort(found_faults.begin(), found_faults.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Error> out;
  for (auto& [shards, error] : found_faults) out.push_back(std::move(error));
  return out;
}

void FoundShards::require_each(const Packing& packing, const Files& found) const {
  std::vector<std::string> missing;
  auto next = found.begin();
  for (std::int64_t i = 0; i < packing.count && missing.size() < kNamedInErrors; ++i) {
    if (next != found.end() && next->first == i) {
      ++next;
      continue;
    }
    const std::string name = shard_name({i, packing.count});
    if (const auto other = packings_.find(packing.folder + name); other != packings_.end()) {
      const bool is_foreign = other->second != packing.id;
      missing.push_back(is_foreign ? core::format("{} (the file of that name is of another packing than {})",
                                                  core::quoted(name), core::quoted(found.begin()->second.front().name))
                                   : core::format("{} (the file of that name is another shard)", core::quoted(name)));
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

void FoundShards::require_even(const Packing& packing, const Files& found) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto [least, most] = std::minmax_element(found.begin(), found.end(), fewer);
  if (least->second.size() == most->second.size()) return;
  throw Error(ErrorCode::kCorrupt,
              core::format("the files {} and {} are both shard {} of {}, and shard {} is there less often: remove the "
                           "copy, or copy what is missing",
                           core::quoted(most->second.front().name), core::quoted(most->second.back().name), most->first,
                           packing.count, least->first),
              {.path = packing.folder});
}

/// Packings of which only some samples differ may have one id. What follows a shard then tells: each says what lies
/// before it. Behind a shard that was not asked for, nothing is known.
void FoundShards::require_chain(const Packing& packing, const Files& found) {
  for (auto last = found.begin(), next = last; ++next != found.end(); last = next) {
    if (next->first != last->first + 1) continue;
    for (const File& file : next->second) {
      const bool follows = std::any_of(last->second.begin(), last->second.end(),
                                       [&file](const File& before) { return before.through == file.before; });
      if (follows) continue;
      throw Error(ErrorCode::kCorrupt,
                  core::format("the file {} does not follow {}: one of them is of another packing, which had other "
                               "samples; copy the shards of one packing, or pack the samples again",
                               core::quoted(file.name), core::quoted(last->second.front().name)),
                  {.path = packing.folder});
    }
  }
}

}  // namespace penstock::data
