#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
  /// kNotFound where a folder lacks a shard of a packing that it has others of, also where the file of its name is
  /// another shard. A shard that lies there and was not asked for is not missing. kCorrupt where some shards are there
  /// more often than others: two whole packings may lie in one folder, and a copy of one shard beside others may not.
  void require_all() const;

 private:
  struct Packing {
    std::string folder;  ///< with '/' at its end, or empty
    std::int64_t count;
    friend auto operator<=>(const Packing&, const Packing&) = default;
  };
  using Names = std::map<std::int64_t, std::vector<std::string>>;  ///< of the files that are each number

  void require_each(const Packing& packing, const Names& found) const;
  static void require_even(const Packing& packing, const Names& found);

  std::map<Packing, Names> found_;
  std::set<std::string> paths_;
};

}  // namespace penstock::data
