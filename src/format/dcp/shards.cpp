// torch's HuggingFaceStorageWriter, with save_distributed, leaves a file of safetensors for each rank and nothing that
// lists them. Their `__metadata__` has DCP_SHARDING_INFO, JSON with the offsets of each tensor in the whole one
// (sharding_info.h); a file without it has whole tensors. The size of a tensor is said nowhere: it ends where the last
// chunk ends.

#include "format/dcp/shards.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "format/dcp/assembly.h"
#include "format/dcp/coverage.h"
#include "format/dcp/dcp.h"
#include "format/dcp/shard_names.h"
#include "format/dcp/sharding_info.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "format/safetensors/shard_paths.h"
#include "io/file/folder_names.h"
#include "io/source/folder_list.h"
#include "penstock/error.h"

namespace penstock::format {
namespace dcp {
namespace {

std::vector<std::string> shard_names(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> names = io::folder_names(folder, ignored);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".safetensors"); });
  std::sort(names.begin(), names.end());
  return names;
}

Index read_shard(const Source& source) {
  const Format* const format = find_format(*source);
  if (format == nullptr || format->name != kSafetensorsFormat.name) {
    throw Error(ErrorCode::kUnknownFormat, "this shard of a checkpoint is not a .safetensors file; copy it again",
                {source.name(), 0});
  }
  return kSafetensorsFormat.read_index(source, {});
}

bool has_chunks(const std::string& path) {
  try {
    return read_shard(open_source(path)).metadata.contains(std::string(kShardingInfo));
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void fail_shard(const Source& shard, const std::string& tensor, const std::string& message) {
  throw Error(ErrorCode::kCorrupt, core::format("{}; save the checkpoint again", message), {shard.name(), {}, tensor});
}

class ShardsReader {
 public:
  explicit ShardsReader(const Source& list) { index_.sources.push_back(list); }

  void add(const Source& source) {
    const Index shard = read_shard(source);
    std::vector<Shape> offsets = offsets_of(shard, source.name());
    const auto number = static_cast<std::uint32_t>(index_.sources.size());
    index_.sources.push_back(source);
    for (std::size_t i = 0; i < shard.entries.size(); ++i) {
      const TensorEntry& entry = shard.entries[i];
      const auto [at, added] = numbers_.try_emplace(entry.name, tensors_.size());
      if (added) tensors_.push_back({entry.name, {}});
      StorageEntry storage = shard.storages[entry.storage];
      storage.source = number;
      tensors_[at->second].chunks.push_back({{offsets[i], entry.shape}, entry, std::move(storage), source});
    }
  }

  Index take() {
    for (Tensor& tensor : tensors_) {
      try {
        const DType dtype = tensor.chunks.front().entry.dtype;
        const Shape shape = ordered(tensor);
        add_tensor(tensor.name, dtype, shape, std::move(tensor.chunks), false, index_);
      } catch (const Error& error) {
        throw error.within({index_.sources.front().name(), {}, tensor.name});
      }
    }
    index_.structure = dict_of_entries(index_.entries);
    return std::move(index_);
  }

 private:
  struct Tensor {
    std::string name;
    std::vector<StoredChunk> chunks;
  };

  /// The shape of the whole tensor; leaves its chunks checked and without empty ones.
  static Shape ordered(Tensor& tensor) {
    Shape shape = tensor.chunks.front().box.shape;
    for (const StoredChunk& chunk : tensor.chunks) {
      if (chunk.box.shape.rank() != shape.rank())
        fail_shard(chunk.file, tensor.name, "its chunks differ in dimensions");
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        shape[d] = std::max(shape[d], core::checked_add(chunk.box.at[d], chunk.box.shape[d], "the end of a chunk"));
      }
    }
    std::vector<Chunk> boxes;
    for (const StoredChunk& chunk : tensor.chunks) boxes.push_back({chunk.box, {}});
    require_cover(boxes, shape, tensor.name);
    std::erase_if(tensor.chunks, [](const StoredChunk& chunk) { return chunk.box.shape.numel() == 0; });
    return shape;
  }

  Index index_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

/// By the class of the source, and never by bytes: those of a stranger would choose which files are opened.
bool sniff(std::span<const std::byte>, const ByteSource& source) { return io::as_folder_list(source) != nullptr; }

Index read_index(const Source& source, const OpenOptions&) {
  const io::FolderList* const list = io::as_folder_list(*source);
  if (list == nullptr) throw Error(ErrorCode::kUnsupported, "this is no list of a folder's shards", {source.name()});
  require_all_shards(list->names(), list->name());
  ShardsReader reader(source);
  for (const std::string& name : list->names()) {
    const std::string path = shard_path(list->name() + "/.", name);
    if (path.empty()) throw Error(ErrorCode::kNotFound, "a shard vanished while the folder was opened", {list->name()});
    const Source shard = open_source(path);
    require_shard(list->name() + "/.", name, *shard);
    reader.add(shard);
  }
  return reader.take();
}

constexpr auto kExtensions = std::to_array<std::string_view>({".metadata"});

}  // namespace

std::optional<Source> list_shards(const std::string& folder) {
  std::vector<std::string> names = shard_names(folder);
  // The writer calls them so. One is opened, because the folder may be one of a million samples.
  const auto first =
      std::find_if(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("shard-"); });
  if (first == names.end() || !has_chunks(std::filesystem::path(folder) / *first)) return std::nullopt;
  return std::make_shared<io::FolderList>(folder, std::move(names));
}

}  // namespace dcp

constinit const Format kDcpShardsFormat{.name = "dcp",
                                        .extensions = dcp::kExtensions,
                                        .sniff = dcp::sniff,
                                        .read_index = dcp::read_index,
                                        .write = nullptr,
                                        .metadata_is_own = true,
                                        .is_index = true,
                                        .lists_names = true,
                                        .is_listed = true};

}  // namespace penstock::format
