// A model that is split over several files has an index: a JSON file that names the file of each tensor. Reading it
// opens the files (shards), reads their indexes and merges what is listed into one. Shards may be of any format whose
// tensors have names.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "format/safetensors/shard_list.h"
#include "io/source/source.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

/// How much of the file sniffing reads: `metadata` is short and `weight_map` comes behind it.
constexpr std::uint64_t kSniffedBytes = 64 * 1024;

bool sniff_shard_index(std::span<const std::byte> head, const ByteSource& source) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{' || source.size() > kMaxShardListBytes) return false;
  std::string start(static_cast<std::size_t>(std::min(source.size(), kSniffedBytes)), '\0');
  source.read(0, std::as_writable_bytes(std::span(start)));
  return start.find("\"weight_map\"") != start.npos;
}

/// The index of one shard, of whatever format it is.
Index read_shard(const Source& source, const OpenOptions& options) {
  const Format& format = detect(*source);
  if (format.is_index) {
    throw Error(ErrorCode::kUnsupported, "this shard of an index is an index itself, not a file of tensors",
                {source.name()});
  }
  Index shard = format.read_index(source, options);
  if (!shard.structure.is(Value::Kind::kDict)) {
    throw Error(ErrorCode::kUnsupported,
                core::format("this shard of an index is a {} file without names: an index finds its tensors by name in "
                             "a dict",
                             format.name),
                {source.name()});
  }
  return shard;
}

using Wanted = std::unordered_map<std::string_view, const ShardList::Tensor*>;

[[noreturn]] void throw_missing(const ShardList::Shard& shard, const Wanted& wanted, const std::string& index_path) {
  const ShardList::Tensor& first = *std::min_element(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
                                      return a.second->where < b.second->where;
                                    })->second;
  throw Error(
      ErrorCode::kCorrupt,
      core::format("the index says that the tensor is in {}, which has no such tensor; index and shards are not "
                   "of one model",
                   core::quoted(shard.name)),
      {index_path, first.where, first.name});
}

/// Adds a shard's entries and their storages to an index, renumbered.
class Merger {
 public:
  Merger(const Index& shard, Index& index) : shard_(shard), index_(index) {
    source_ = static_cast<std::uint32_t>(index.sources.size());
    index.sources.push_back(shard.sources.front());
  }

  void add(const std::string& name, const Value& value) {
    const std::optional<std::size_t> number = value.entry_index();
    if (!number) {
      throw Error(ErrorCode::kUnsupported,
                  "the value is not a plain tensor, which is all that an index can name; load its shards one by one",
                  {shard_.sources.front().name(), {}, name});
    }
    TensorEntry& entry = index_.entries.emplace_back(shard_.entries[*number]);
    entry.name = name;
    const auto [at, added] = storages_.try_emplace(entry.storage, index_.storages.size());
    if (added) index_.storages.emplace_back(shard_.storages[entry.storage]).source = source_;
    entry.storage = at->second;
  }

 private:
  const Index& shard_;
  Index& index_;
  std::uint32_t source_;
  std::unordered_map<std::size_t, std::size_t> storages_;
};

/// Adds the tensors of one shard that the index lists there; others in it are not the index's and stay unseen.
void add_shard(const ShardList::Shard& listed, const Index& shard, const std::string& index_path, Index& index) {
  Wanted wanted;
  for (const ShardList::Tensor& tensor : listed.tensors) wanted.emplace(tensor.name, &tensor);
  Merger merger(shard, index);
  for (std::size_t i = 0; i < shard.structure.size(); ++i) {
    const auto [key, value] = shard.structure.item(i);
    if (key.is(Value::Kind::kString) && wanted.erase(key.as_string()) != 0) merger.add(key.as_string(), value);
  }
  if (!wanted.empty()) throw_missing(listed, wanted, index_path);
}

/// Keeps what every shard says: where they differ it is about the shard and not the model.
void keep_common(std::map<std::string, std::string>& common, const std::map<std::string, std::string>& other) {
  std::erase_if(common, [&](const auto& item) {
    const auto found = other.find(item.first);
    return found == other.end() || found->second != item.second;
  });
}

Index read_shard_index(const Source& source, const OpenOptions& options) {
  const std::string& path = source.name();
  ShardList list = read_shard_list(*source);
  if (!io::opened_by_name(*source)) {
    throw Error(ErrorCode::kUnsupported, "a sharded index must be opened by its path or URL: its shards are beside it",
                {path});
  }
  Index index;
  index.metadata = std::move(list.metadata);
  const std::vector<Source> files = open_shards(list, path);
  index.sources.push_back(source);
  std::map<std::string, std::string> common;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Index shard = read_shard(files[i], options);
    if (i == 0) common = shard.metadata;
    if (i != 0) keep_common(common, shard.metadata);
    add_shard(list.shards[i], shard, path, index);
  }
  index.metadata.merge(common);
  index.structure = dict_of_entries(index.entries);
  return index;
}

constexpr auto kShardIndexExtensions = std::to_array<std::string_view>({".safetensors.index.json", ".bin.index.json"});

}  // namespace

constinit const Format kShardIndexFormat{.name = "shard-index",
                                         .extensions = kShardIndexExtensions,
                                         .sniff = sniff_shard_index,
                                         .read_index = read_shard_index,
                                         .write = nullptr,
                                         .is_index = true,
                                         .lists_names = true};

}  // namespace penstock::format
