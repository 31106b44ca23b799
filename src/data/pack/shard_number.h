#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

/// Which of the shards of one packing a file is. Each has it in its metadata, so that one that is missing is noticed.
struct ShardNumber {
  std::int64_t number = 0;  ///< from 0
  std::int64_t count = 0;
};

/// What the shard is called. Names in order of their bytes are in order of their numbers.
std::string shard_name(const ShardNumber& shard, std::string_view extension = ".safetensors");

/// The metadata of a shard that says its number.
std::map<std::string, std::string> metadata_of(const ShardNumber& shard);
/// What it says; nothing where it says nothing, as shards of older releases do. kCorrupt for what is no such number.
std::optional<ShardNumber> shard_number_of(const std::map<std::string, std::string>& metadata, const std::string& path);

/// The shards that were found of one or more packings.
class FoundShards {
 public:
  void add(const std::string& path, const ShardNumber& shard);
  /// kNotFound where a folder lacks a shard of a packing that it has others of. A shard that lies there and was not
  /// asked for is not missing.
  void require_all() const;

 private:
  struct Packing {
    std::string folder;  ///< with '/' at its end, or empty
    std::int64_t count;
    friend auto operator<=>(const Packing&, const Packing&) = default;
  };
  std::map<Packing, std::vector<std::int64_t>> numbers_;
};

}  // namespace penstock::data
