#pragma once

// `penstock convert --shard-size`: tensors in several files and an index, as Hugging Face's programs read them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/load.h"

namespace penstock::cli {

/// A file of its own: which tensors of an archive it has, with their names in the file.
struct Shard {
  std::vector<std::pair<std::string, std::size_t>> tensors;
  std::string path;
};

/// The tensors in their order, in shards of at most `most` bytes; a tensor that is larger is alone. They are called as
/// huggingface_hub calls them: model-00001-of-00003.safetensors for model.safetensors. `entries` are those of the
/// archive as they are written. kUnsupported for content that safetensors does not hold, and for tensors that share
/// their bytes.
std::vector<Shard> shards_of(const Archive& archive, std::span<const TensorEntry> entries, std::uint64_t most,
                             const std::string& to);

/// The archive of one shard's tensors.
Archive archive_of(const Archive& archive, const Shard& shard);

/// model.safetensors.index.json for model.safetensors.
std::string shard_index_path(const std::string& to);
/// Its text, as transformers reads it.
std::string shard_index(const std::vector<Shard>& shards, std::uint64_t bytes);

/// Gives the shards of `to` names that no file has, with more digits in their numbers where files have the usual ones:
/// an index that is there may name those. Returns the files whose places the shards take, which are of no use behind
/// the new index.
std::vector<std::string> take_free_names(std::vector<Shard>& shards, const std::string& to);

}  // namespace penstock::cli
