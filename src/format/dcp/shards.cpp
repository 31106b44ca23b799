// torch's HuggingFaceStorageWriter, with save_distributed, leaves a file of safetensors for each rank and nothing that
// lists them. Their `__metadata__` has DCP_SHARDING_INFO, JSON with the offsets of each tensor in the whole one; a file
// without it has whole tensors. The size of a tensor is said nowhere: it ends where the last chunk ends.

#include "format/dcp/shards.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"
#include "format/dcp/assembly.h"
#include "format/dcp/coverage.h"
#include "format/dcp/dcp.h"
#include "format/flat_tensors.h"
#include "format/rows.h"
#include "format/safetensors/shard_paths.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::format {
namespace dcp {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kMagic("penstock shards\0", 16);
constexpr std::string_view kSharding = "DCP_SHARDING_INFO";

std::vector<std::string> shard_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(".safetensors")) names.push_back(std::move(name));
  }
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
    return read_shard(open_source(path)).metadata.contains(std::string(kSharding));
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void fail(const Source& shard, const std::string& tensor, const std::string& message) {
  throw Error(ErrorCode::kCorrupt, core::format("{}; save the checkpoint again", message), {shard.name(), {}, tensor});
}

/// The offsets of one shard's tensors.
json sharding_of(const Source& source, const Index& shard) {
  const auto found = shard.metadata.find(std::string(kSharding));
  if (found == shard.metadata.end()) return nullptr;
  json parsed = json::parse(found->second, nullptr, false);
  if (!parsed.is_object()) fail(source, {}, core::format("its {} is no JSON object", kSharding));
  return parsed;
}

Shape offsets_of(const json& sharding, const TensorEntry& entry, const Source& source) {
  std::vector<std::int64_t> at(entry.shape.rank(), 0);
  if (!sharding.is_null()) {
    const auto info = sharding.find(entry.name);
    const bool is_there = info != sharding.end() && info->is_object() && info->contains("saved_offsets");
    const json offsets = is_there ? (*info)["saved_offsets"] : json();
    bool good = offsets.is_array() && offsets.size() == at.size();
    for (std::size_t d = 0; good && d < at.size(); ++d) {
      good = offsets[d].is_number_unsigned() && offsets[d].get<std::uint64_t>() <= INT64_MAX;
      if (good) at[d] = offsets[d].get<std::int64_t>();
    }
    if (!good) fail(source, entry.name, core::format("its saved_offsets in {} are missing or wrong", kSharding));
  }
  return Shape(std::span<const std::int64_t>(at));
}

class ShardsReader {
 public:
  explicit ShardsReader(const Source& list) { index_.sources.push_back(list); }

  void add(const Source& source) {
    const Index shard = read_shard(source);
    const json sharding = sharding_of(source, shard);
    const auto number = static_cast<std::uint32_t>(index_.sources.size());
    index_.sources.push_back(source);
    for (const TensorEntry& entry : shard.entries) {
      const auto [at, added] = numbers_.try_emplace(entry.name, tensors_.size());
      if (added) tensors_.push_back({entry.name, {}});
      StorageEntry storage = shard.storages[entry.storage];
      storage.source = number;
      tensors_[at->second].chunks.push_back(
          {{offsets_of(sharding, entry, source), entry.shape}, entry, std::move(storage), source});
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
      if (chunk.box.shape.rank() != shape.rank()) fail(chunk.file, tensor.name, "its chunks differ in dimensions");
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

bool sniff(std::span<const std::byte> head, const ByteSource& source) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return source.descriptor() < 0 && !io::is_url(source.name()) && text.starts_with(kMagic);
}

Index read_index(const Source& list, const OpenOptions&) {
  std::string text(static_cast<std::size_t>(list.size()), '\0');
  list.read(0, std::as_writable_bytes(std::span(text)));
  ShardsReader reader(list);
  std::string_view rest = std::string_view(text).substr(kMagic.size());
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const std::string path = shard_path(list.name() + "/.", name);
    if (path.empty()) throw Error(ErrorCode::kNotFound, "a shard vanished while the folder was opened", {list.name()});
    reader.add(open_source(path));
  }
  return reader.take();
}

constexpr auto kExtensions = std::to_array<std::string_view>({".metadata"});

}  // namespace

std::optional<Source> list_shards(const std::string& folder) {
  const std::vector<std::string> names = shard_names(folder);
  // The writer calls them so. One is opened, because the folder may be one of a million samples.
  const auto first =
      std::find_if(names.begin(), names.end(), [](const std::string& name) { return name.starts_with("shard-"); });
  if (first == names.end() || !has_chunks((fs::path(folder) / *first).string())) return std::nullopt;
  std::string text(kMagic);
  for (const std::string& name : names) text.append(name).push_back('\0');
  const Buffer bytes = Buffer::allocate(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  return memory_source(bytes, folder);
}

}  // namespace dcp

constinit const Format kDcpShardsFormat{.name = "dcp",
                                        .extensions = dcp::kExtensions,
                                        .sniff = dcp::sniff,
                                        .read_index = dcp::read_index,
                                        .write = nullptr,
                                        .metadata_is_own = true,
                                        .is_index = true,
                                        .is_listed = true};

}  // namespace penstock::format
