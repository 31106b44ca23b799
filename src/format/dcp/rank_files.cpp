// torch_checkpointing leaves a folder in which each rank has a file of each item of the checkpoint: `model_0.pt`,
// `model_1.pt`. Of items that can be loaded on other ranks, `metadata.pkl` says which part of its tensors each file
// has. Such an item is read as one: its content is what the files have together, with whole tensors in the places of
// the parts. Files of other items are named nowhere, so they are opened by their own paths.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "format/check_index.h"
#include "format/dcp/dcp.h"
#include "format/dcp/item_error.h"
#include "format/dcp/rank_metadata.h"
#include "format/dcp/ranked_item.h"
#include "format/safetensors/shard_paths.h"
#include "io/locations.h"
#include "io/source/source.h"
#include "penstock/error.h"

namespace penstock::format {
namespace dcp {
namespace {

constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxRankFiles = 64 * 1024;

std::vector<RankedItem> items_of(const Source& source) {
  if (source.size() > kMaxPickleBytes) {
    throw Error(ErrorCode::kLimit, core::format("the file has {} bytes; a metadata.pkl has megabytes", source.size()),
                {source.name()});
  }
  std::vector<std::byte> pickle(static_cast<std::size_t>(source.size()));
  source.read(0, pickle);
  return read_rank_metadata(pickle);
}

Index index_of(const Source& source, std::uint32_t number, const OpenOptions& options) {
  const Format& format = detect(*source);
  if (format.is_index || format.holds_samples) {
    throw Error(ErrorCode::kUnsupported, "the file of a rank is an index or an archive itself", {source.name()});
  }
  Index out = format.read_index(source, options);
  if (out.sources.size() != 1) {
    throw Error(ErrorCode::kUnsupported, "the file of a rank names other files", {source.name()});
  }
  check_index(out);
  for (StorageEntry& storage : out.storages) storage.source = number;
  return out;
}

Index read_all(const Source& source, const OpenOptions& options) {
  Index out;
  out.sources.push_back(source);
  const std::vector<RankedItem> items = items_of(source);
  std::vector<std::string> names;
  for (const RankedItem& item : items) {
    for (const auto& [rank, file] : item.files) names.push_back(file);
  }
  if (names.size() > kMaxRankFiles)
    fail(core::format("metadata.pkl names more than {} files", kMaxRankFiles), {}, ErrorCode::kLimit);
  const std::vector<Source> opened = open_beside(
      source.name(), names,
      {.what = "files beside metadata.pkl", .verb = "copy", .from = " from where the checkpoint was saved"});
  out.sources.insert(out.sources.end(), opened.begin(), opened.end());
  std::vector<std::pair<std::string, Value>> content;
  std::uint32_t number = 1;
  for (const RankedItem& item : items) {
    std::vector<RankFile> files;
    for (const auto& [rank, file] : item.files) {
      const Source& each = out.sources[number];
      files.push_back({rank, each, number, index_of(each, number, options)});
      ++number;
    }
    content.emplace_back(item.name, read_item(item, std::move(files), options, out));
  }
  out.structure = Value::dict(std::move(content));
  return out;
}

bool is_rank_metadata(std::span<const std::byte> head, const ByteSource& source) {
  constexpr std::string_view kFirstKey = "metadata";
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::string_view path = io::path_part(source.name());
  return text.starts_with('\x80') && text.substr(0, 32).find(kFirstKey) != text.npos &&
         path.substr(path.rfind('/') + 1) == kRankMetadataName;
}

Index read_rank_files(const Source& source, const OpenOptions& options) {
  if (!io::opened_by_name(*source)) {
    throw Error(
        ErrorCode::kUnsupported,
        "the metadata.pkl of a checkpoint must be opened by its path or URL: what it describes are files beside "
        "it",
        {source.name()});
  }
  try {
    return read_all(source, options);
  } catch (const Error& error) {
    throw error.within({.path = source.name()});
  }
}

constexpr auto kRankFileExtensions = std::to_array<std::string_view>({".metadata"});

}  // namespace
}  // namespace dcp

constinit const Format kRankFilesFormat{.name = "torch_checkpointing",
                                        .extensions = dcp::kRankFileExtensions,
                                        .sniff = dcp::is_rank_metadata,
                                        .read_index = dcp::read_rank_files,
                                        .write = nullptr,
                                        .is_index = true};

}  // namespace penstock::format
