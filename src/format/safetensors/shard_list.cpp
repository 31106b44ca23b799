// Reads the JSON of a sharded model's index and opens the files that it names.

#include "format/safetensors/shard_list.h"

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "format/safetensors/shard_paths.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// Each shard is a file kept open. Real models have up to a few hundred.
constexpr std::size_t kMaxShards = 16 * 1024;

/// Anything but `metadata` and `weight_map` is stepped over.
class IndexReader final : public core::JsonReader {
 public:
  using core::JsonReader::JsonReader;

  void require_weight_map() const {
    if (!names_.contains("weight_map")) fail("the index has no 'weight_map', which says where each tensor is");
  }

  std::map<std::string, std::string> metadata;
  std::vector<ShardList::Shard> shards;

 private:
  enum class State : std::uint8_t { kStart, kTop, kMetadata, kWeightMap };

  void on_object() override;
  void on_object_end() override { state_ = State::kTop; }
  void on_array() override;
  void on_key(std::string& name) override;
  void on_string(std::string& value) override;
  void on_unsigned(std::uint64_t value) override;
  void on_other(std::string_view kind) override;
  [[noreturn]] void unexpected(std::string_view kind) override;

  State state_ = State::kStart;
  std::string key_;
  std::set<std::string, std::less<>> names_;  ///< of the top, then of `metadata`: both are small
  std::set<std::string, std::less<>> metadata_names_;
  std::map<std::string, std::size_t, std::less<>> shard_numbers_;
};

void IndexReader::on_object() {
  if (state_ == State::kStart) {
    state_ = State::kTop;
  } else if (state_ == State::kTop) {
    state_ = key_ == "metadata" ? State::kMetadata : State::kWeightMap;
  } else if (state_ == State::kMetadata) {
    skip_object();
  } else {
    unexpected("an object");
  }
}

void IndexReader::on_array() {
  if (state_ != State::kMetadata) unexpected("a list");
  skip_array();
}

void IndexReader::on_key(std::string& name) {
  key_ = std::move(name);
  if (state_ == State::kWeightMap) return;
  if (!(state_ == State::kTop ? names_ : metadata_names_).insert(key_).second) {
    fail(core::format("the index names {} twice; each name may occur once", core::quoted(key_)));
  }
  if (state_ == State::kTop && key_ != "metadata" && key_ != "weight_map") skip_value();
}

void IndexReader::on_string(std::string& value) {
  if (state_ == State::kMetadata) {
    metadata[key_] = std::move(value);
    return;
  }
  if (state_ != State::kWeightMap) unexpected("a string");
  const auto [at, added] = shard_numbers_.try_emplace(value, shards.size());
  if (added) shards.push_back({std::move(value), {}});
  if (shards.size() > kMaxShards) {
    fail(core::format("the index names more than {} shards", kMaxShards), {}, ErrorCode::kLimit);
  }
  shards[at->second].tensors.push_back({std::move(key_), offset()});
}

void IndexReader::on_unsigned(std::uint64_t value) {
  if (state_ != State::kMetadata) unexpected("a number");
  metadata[key_] = std::to_string(value);
}

void IndexReader::on_other(std::string_view kind) {
  if (state_ != State::kMetadata) unexpected(kind);
}

void IndexReader::unexpected(std::string_view kind) {
  if (state_ == State::kWeightMap) fail(core::format("the shard is {}; it must be a file name", kind), key_);
  fail(core::format("{} is {}; it must be an object", core::quoted(key_), kind));
}

/// A tensor that is listed twice would be in two places, or said twice: neither is right.
void refuse_repeated(const ShardList& list, const std::string& path) {
  std::vector<const ShardList::Tensor*> all;
  for (const ShardList::Shard& shard : list.shards) {
    for (const ShardList::Tensor& listed : shard.tensors) all.push_back(&listed);
  }
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->name != b->name ? a->name < b->name : a->where < b->where; });
  const auto repeated =
      std::adjacent_find(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->name == b->name; });
  if (repeated == all.end()) return;
  throw Error(ErrorCode::kCorrupt, "the index lists this tensor twice; each name may occur once",
              {path, repeated[1]->where, (*repeated)->name});
}

}  // namespace

ShardList read_shard_list(const ByteSource& source) {
  std::string json(static_cast<std::size_t>(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(json)));
  IndexReader reader(json, source.name(), 0);
  reader.read();
  reader.require_weight_map();
  ShardList list{std::move(reader.metadata), std::move(reader.shards)};
  refuse_repeated(list, source.name());
  return list;
}

std::vector<Source> open_shards(const ShardList& list, const std::string& index_path) {
  std::vector<std::string> names;
  for (const ShardList::Shard& shard : list.shards) names.push_back(shard.name);
  return open_beside(index_path, names, {.what = "shards beside the index", .verb = "fetch"});
}

}  // namespace penstock::format
