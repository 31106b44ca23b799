#pragma once

// The words of a sharded model's index, `{"metadata": {...}, "weight_map": {tensor: shard}}`.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "penstock/source.h"

namespace penstock::format {

struct ShardList {
  struct Tensor {
    std::string name;
    std::uint64_t where = 0;  ///< byte of the index
  };
  struct Shard {
    std::string name;  ///< of a file beside the index
    std::vector<Tensor> tensors;
  };

  std::map<std::string, std::string> metadata;  ///< strings and whole numbers, as text
  std::vector<Shard> shards;                    ///< in the order in which they are first named
};

/// As for a safetensors header; real indexes have a few hundred kilobytes.
inline constexpr std::uint64_t kMaxShardListBytes = 100'000'000;

/// Reads and checks an index, of up to kMaxShardListBytes, without opening a shard. kCorrupt, also for a tensor that is
/// listed twice; kLimit for more shards than files may be open.
ShardList read_shard_list(const ByteSource& source);

/// The files beside the index, in the list's order. kNotFound names those that are missing before any is opened;
/// kUnsafe as shard_path().
std::vector<Source> open_shards(const ShardList& list, const std::string& index_path);

}  // namespace penstock::format
