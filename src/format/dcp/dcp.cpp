// A checkpoint of torch.distributed.checkpoint is a folder: `.metadata`, and files of torch.save streams, one stream
// for each chunk of a tensor and each other object. Opening it reads `.metadata` and the index of every stream. Where a
// tensor is one chunk it becomes a plain view of its file; chunks of others are read as one source
// (chunked_tensor.h), so that all loads, slices and devices work as for any file.

#include "format/dcp/dcp.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/format.h"
#include "format/dcp/assembly.h"
#include "format/dcp/coverage.h"
#include "format/dcp/metadata.h"
#include "format/dcp/nesting.h"
#include "format/dcp/stream.h"
#include "format/dcp/stream_ends.h"
#include "format/safetensors/shard_paths.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock::format {
namespace {

using dcp::Chunk;
using dcp::Item;
using dcp::StreamSpan;

/// Each file is kept open; a rank writes one or a few.
constexpr std::size_t kMaxFiles = 64 * 1024;
constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{4} << 30;
/// Nearly every .metadata has fewer bytes, and is read at once.
constexpr std::uint64_t kFirstBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxText = std::uint64_t{32} << 20;

bool sniff(std::span<const std::byte> head, const ByteSource&) { return dcp::is_metadata(head); }

/// The names of the files that hold something, in order: where each is among the sources.
std::map<std::string, std::size_t> numbers_of_files(const std::vector<Item>& items) {
  std::map<std::string, std::size_t> out;
  for (const Item& item : items) {
    for (const Chunk& chunk : item.chunks) {
      out.emplace(chunk.place.file, 0);
      if (out.size() > kMaxFiles) {
        throw Error(ErrorCode::kLimit, core::format(".metadata names more than {} files", kMaxFiles));
      }
    }
  }
  std::size_t next = 1;  // behind .metadata
  for (auto& [name, number] : out) number = next++;
  return out;
}

class CheckpointReader {
 public:
  CheckpointReader(const Source& source, const OpenOptions& options) : path_(source.name()), options_(options) {
    index_.sources.push_back(source);
  }

  Index read(dcp::Metadata metadata) {
    open_files(metadata.items);
    refuse_shared_places(metadata.items);
    order_chunks(metadata.items);  // before their streams are told apart by their addresses
    ends_.emplace(streams_in_order(metadata.items));
    for (const Item& item : metadata.items) {
      try {
        content_.emplace_back(item.name, item.is_tensor ? tensor(item) : object(item));
      } catch (const Error& error) {
        throw error.within({.path = path_, .tensor = item.name});
      }
    }
    index_.structure = dcp::nested(content_, metadata.paths);
    return std::move(index_);
  }

 private:
  void open_files(const std::vector<Item>& items) {
    files_ = numbers_of_files(items);
    std::vector<std::string> names;
    for (const auto& [name, number] : files_) names.push_back(name);
    const std::vector<Source> opened =
        open_beside(path_, names,
                    {.what = "files beside .metadata", .verb = "copy", .from = " from where the checkpoint was saved"});
    index_.sources.insert(index_.sources.end(), opened.begin(), opened.end());
  }

  void refuse_shared_places(const std::vector<Item>& items) const {
    std::vector<dcp::ItemPlace> places;
    for (const Item& item : items) {
      for (const Chunk& chunk : item.chunks) places.push_back({&chunk.place, item.name});
    }
    try {
      dcp::require_apart(std::move(places));
    } catch (const Error& error) {
      throw error.within({.path = path_});
    }
  }

  /// Chunks must cover their tensors; from here on they stay where they are.
  void order_chunks(std::vector<Item>& items) const {
    for (Item& item : items) {
      if (!item.is_tensor) continue;
      try {
        dcp::require_cover(item.chunks, item.shape, item.name);
      } catch (const Error& error) {
        throw error.within({.path = path_, .tensor = item.name});
      }
    }
  }

  std::vector<dcp::StreamEnds::Stream> streams_in_order(const std::vector<Item>& items) const {
    std::vector<dcp::StreamEnds::Stream> out;
    for (const Item& item : items) {
      for (const Chunk& chunk : item.chunks) {
        out.push_back({&chunk.place, index_.sources[files_.at(chunk.place.file)]});
      }
    }
    return out;
  }

  Index stream(const Item& item, const StreamSpan& place, Source& file) {
    const auto number = static_cast<std::uint32_t>(files_.at(place.file));
    file = index_.sources[number];
    Index stream = dcp::read_stream(file, number, place, ends_->take(place), item.name, options_);
    std::ranges::move(stream.unknown_globals, std::back_inserter(index_.unknown_globals));
    return stream;
  }

  Value tensor(const Item& item) {
    std::vector<dcp::StoredChunk> chunks;
    for (const Chunk& chunk : item.chunks) {
      Source file = index_.sources.front();
      Index found = stream(item, chunk.place, file);
      const std::optional<std::size_t> number = found.structure.entry_index();
      if (!number) {
        throw Error(
            ErrorCode::kUnsupported,
            "a chunk is not a plain tensor (sparse, quantized or of a class of its own, or the file is of another save "
            "than .metadata); load the checkpoint with torch and save it as plain tensors, or copy both again",
            {file.name(), chunk.place.offset});
      }
      TensorEntry& entry = found.entries[*number];
      StorageEntry& storage = found.storages[entry.storage];
      chunks.push_back({chunk.box, std::move(entry), std::move(storage), file});
    }
    dcp::add_tensor(item.name, item.dtype, item.shape, std::move(chunks), options_.verify, index_);
    return Value::entry(index_.entries.size() - 1);
  }

  Value object(const Item& item) {
    Source file = index_.sources.front();
    Index found = stream(item, item.chunks.front().place, file);
    std::vector<std::size_t> positions;
    for (TensorEntry& entry : found.entries) {
      entry.name = found.structure.entry_index() ? item.name : core::format("{}.{}", item.name, entry.name);
      entry.storage += index_.storages.size();
      positions.push_back(index_.entries.size());
      index_.entries.push_back(std::move(entry));
    }
    std::move(found.storages.begin(), found.storages.end(), std::back_inserter(index_.storages));
    return with_entries(found.structure, positions);
  }

  std::string path_;
  const OpenOptions& options_;
  Index index_;
  std::map<std::string, std::size_t> files_;  ///< numbers of sources
  std::optional<dcp::StreamEnds> ends_;
  std::vector<std::pair<std::string, Value>> content_;
};

/// Reads as far as the pickle goes, so that memory is not filled with what a file only claims to have.
dcp::Metadata metadata_of(const ByteSource& source) {
  std::vector<std::byte> pickle;
  for (std::uint64_t wanted = kFirstBytes;; wanted *= 4) {
    const std::size_t have = pickle.size();
    pickle.resize(static_cast<std::size_t>(std::min(wanted, source.size())));
    source.read(have, std::span(pickle).subspan(have));
    const bool whole = pickle.size() == source.size();
    try {
      dcp::Metadata out = dcp::read_metadata(pickle, source.name());
      if (whole) return out;  // else there is something behind its end, which is an error
    } catch (const Error& error) {
      if (whole || error.code() != ErrorCode::kTruncated) throw;
      if (pickle.size() - error.offset().value_or(0) < kMaxText) continue;
      throw Error(ErrorCode::kLimit, "a text in .metadata is longer than any name", {source.name(), error.offset()});
    }
  }
}

Index read_index(const Source& source, const OpenOptions& options) {
  if (!io::opened_by_name(*source)) {
    throw Error(
        ErrorCode::kUnsupported,
        "the .metadata of a distributed checkpoint must be opened by its path or URL: what it describes are files "
        "beside it",
        {source.name()});
  }
  if (source.size() > kMaxMetadataBytes) {
    throw Error(ErrorCode::kLimit, core::format("the file has {} bytes; a .metadata has megabytes", source.size()),
                {source.name()});
  }
  return CheckpointReader(source, options).read(metadata_of(*source));
}

constexpr auto kExtensions = std::to_array<std::string_view>({".metadata"});

}  // namespace

std::vector<Content> dcp::streams_of(std::span<const Source> sources) {
  const Metadata metadata = metadata_of(*sources.front());
  const std::map<std::string, std::size_t> numbers = numbers_of_files(metadata.items);
  std::vector<Content> out;
  for (const Item& item : metadata.items) {
    for (const Chunk& chunk : item.chunks) {
      const StreamSpan& place = chunk.place;
      const std::size_t number = numbers.at(place.file);
      if (number >= sources.size()) {
        throw Error(ErrorCode::kChanged, ".metadata was written to while it was open; read it again when it is whole",
                    {sources.front().name()});
      }
      // A chunk without elements need not have a stream.
      if (place.length == 0 && item.is_tensor && chunk.box.shape.numel() == 0) continue;
      out.push_back({sources[number], place.offset, place.length, item.name});
    }
  }
  return out;
}

constinit const Format kDcpFormat{.name = "dcp",
                                  .extensions = kExtensions,
                                  .sniff = sniff,
                                  .read_index = read_index,
                                  .write = nullptr,
                                  .metadata_is_own = true,
                                  .is_index = true,
                                  .is_folder = true};

}  // namespace penstock::format
