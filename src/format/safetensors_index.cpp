#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "format/flat_tensors.h"
#include "format/json_reader.h"
#include "format/safetensors.h"
#include "format/shard_paths.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// As for a header; real indexes have a few hundred kilobytes.
constexpr std::uint64_t kMaxIndexBytes = kMaxSafetensorsHeader;
/// How much of the file sniffing reads: `metadata` is short and `weight_map` comes behind it.
constexpr std::uint64_t kSniffedBytes = 64 * 1024;
/// Each shard is a file kept open. Real models have up to a few hundred.
constexpr std::size_t kMaxShards = 16 * 1024;
constexpr std::size_t kNamedInErrors = 5;

struct Listed {
  std::string tensor;
  std::uint64_t where;  ///< byte of the index
};

struct Shard {
  std::string name;
  std::vector<Listed> tensors;
};

/// `{"metadata": {...}, "weight_map": {tensor: shard}}`; anything else is stepped over.
class IndexReader final : public JsonReader {
 public:
  using JsonReader::JsonReader;

  void require_weight_map() const {
    if (!names_.contains("weight_map")) fail("the index has no 'weight_map', which says where each tensor is");
  }

  std::map<std::string, std::string> metadata;
  std::vector<Shard> shards;  ///< in the order in which they are first named

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

bool sniff(std::span<const std::byte> head, const ByteSource& source) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{' || source.size() > kMaxIndexBytes) return false;
  std::string start(static_cast<std::size_t>(std::min(source.size(), kSniffedBytes)), '\0');
  source.read(0, std::as_writable_bytes(std::span(start)));
  return start.find("\"weight_map\"") != start.npos;
}

/// The index's own words, without opening a shard.
void read_lists(const ByteSource& source, std::vector<Shard>& shards, std::map<std::string, std::string>& metadata) {
  std::string json(static_cast<std::size_t>(source.size()), '\0');
  source.read(0, std::as_writable_bytes(std::span(json)));
  IndexReader reader(json, source.name(), 0);
  reader.read();
  reader.require_weight_map();
  shards = std::move(reader.shards);
  metadata = std::move(reader.metadata);
}

/// A tensor that is listed twice would be in two places, or said twice: neither is right.
void refuse_repeated(const std::vector<Shard>& shards, const std::string& path) {
  std::vector<const Listed*> all;
  for (const Shard& shard : shards) {
    for (const Listed& listed : shard.tensors) all.push_back(&listed);
  }
  std::sort(all.begin(), all.end(), [](const Listed* a, const Listed* b) {
    return a->tensor != b->tensor ? a->tensor < b->tensor : a->where < b->where;
  });
  const auto repeated = std::adjacent_find(all.begin(), all.end(),
                                           [](const Listed* a, const Listed* b) { return a->tensor == b->tensor; });
  if (repeated == all.end()) return;
  throw Error(ErrorCode::kCorrupt, "the index lists this tensor twice; each name may occur once",
              {path, repeated[1]->where, (*repeated)->tensor});
}

std::vector<SourcePtr> open_shards(const std::vector<Shard>& shards, const std::string& index_path) {
  std::vector<std::string> paths;
  paths.reserve(shards.size());
  std::vector<std::string> missing;
  for (const Shard& shard : shards) {
    paths.push_back(shard_path(index_path, shard.name));
    if (paths.back().empty()) missing.push_back(core::quoted(shard.name));
  }
  if (!missing.empty()) {
    const std::size_t named = std::min(missing.size(), kNamedInErrors);
    throw Error(ErrorCode::kNotFound,
                core::format("{} of the {} shards beside the index {} missing: {}{}; fetch {}", missing.size(),
                             shards.size(), missing.size() == 1 ? "is" : "are",
                             fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                             named < missing.size() ? ", ..." : "", missing.size() == 1 ? "it" : "them"),
                {index_path});
  }
  std::vector<SourcePtr> sources;
  sources.reserve(paths.size());
  for (const std::string& path : paths) sources.push_back(open_source(path));
  return sources;
}

/// Adds the tensors of one shard that the index lists there; others in it are not the index's and stay unseen.
void add_shard(const Shard& shard, const SafetensorsFile& file, std::uint32_t source, const std::string& index_path,
               Index& index) {
  std::unordered_map<std::string_view, const Listed*> wanted;
  for (const Listed& listed : shard.tensors) wanted.emplace(listed.tensor, &listed);
  for (const SafetensorsTensor& tensor : file.header.tensors) {
    if (wanted.erase(tensor.name) != 0) add_safetensors_tensor(tensor, source, file.data_start, index);
  }
  if (wanted.empty()) return;
  const Listed* first = std::min_element(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
                          return a.second->where < b.second->where;
                        })->second;
  throw Error(
      ErrorCode::kCorrupt,
      core::format("the index says that the tensor is in {}, which has no such tensor; index and shards are not "
                   "of one model",
                   core::quoted(shard.name)),
      {index_path, first->where, first->tensor});
}

/// Keeps what every shard says: where they differ it is about the shard and not the model.
void keep_common(std::map<std::string, std::string>& common, const std::map<std::string, std::string>& other) {
  std::erase_if(common, [&](const auto& item) {
    const auto found = other.find(item.first);
    return found == other.end() || found->second != item.second;
  });
}

/// A model's shards may be files of torch.save, under an index of the same form. What is of no format at all gets the
/// errors of a safetensors file.
void refuse_other_formats(const ByteSource& shard) {
  const Format* const format = find_format(shard);
  if (format == nullptr || format->name == kSafetensorsFormat.name) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("this shard of the index is a {} file, and those of an index must be safetensors: load its "
                           "shards one by one",
                           format->name),
              {shard.name()});
}

Index read_index(const SourcePtr& source, const OpenOptions&) {
  const std::string& path = source->name();
  std::vector<Shard> shards;
  Index index;
  read_lists(*source, shards, index.metadata);
  refuse_repeated(shards, path);
  if (source->descriptor() < 0) {
    throw Error(ErrorCode::kUnsupported, "a sharded index must be opened as a file: its shards are files beside it",
                {path});
  }
  index.sources = open_shards(shards, path);
  std::map<std::string, std::string> common;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    refuse_other_formats(*index.sources[i]);
    SafetensorsFile file = read_safetensors_file(*index.sources[i]);
    add_shard(shards[i], file, static_cast<std::uint32_t>(i + 1), path, index);
    if (i == 0) common = std::move(file.header.metadata);
    if (i != 0) keep_common(common, file.header.metadata);
  }
  index.sources.insert(index.sources.begin(), source);
  index.metadata.merge(common);
  index.structure = dict_of_entries(index.entries);
  return index;
}

constexpr auto kExtensions = std::to_array<std::string_view>({".safetensors.index.json"});

}  // namespace

constinit const Format kSafetensorsIndexFormat{"safetensors-index", kExtensions, sniff, read_index, nullptr};

}  // namespace penstock::format
