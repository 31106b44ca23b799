#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/error.h"

namespace penstock::data {

/// Which of the shards of one packing a file is. Each has it in its metadata, so that one that is missing is noticed,
/// and one of another packing in its place. The texts are empty in shards that do not have them.
struct ShardNumber {
  std::int64_t number = 0;  ///< from 0
  std::int64_t count = 0;
  std::string packing = {};  ///< the same in all shards of a packing: what was known of it before the first was written
  std::string before = {};   ///< a checksum of all samples in the shards before it
  std::string through = {};  ///< of those and its own, which the next shard has for its `before`
};

/// What the shard is called. Names in order of their bytes are in order of their numbers.
std::string shard_name(const ShardNumber& shard, std::string_view extension = ".safetensors");

/// The metadata of a shard that says so.
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
  /// kCorrupt too where a shard does not follow the one before it.
  void require_all() const;
  /// What is wrong with each packing; first that of which most shards were found.
  std::vector<Error> faults() const;

 private:
  struct Packing {
    std::string folder;  ///< with '/' at its end, or empty
    std::int64_t count;
    std::string id;  ///< ShardNumber::packing
    friend auto operator<=>(const Packing&, const Packing&) = default;
  };
  struct File {
    std::string name;
    std::string before;
    std::string through;
  };
  using Files = std::map<std::int64_t, std::vector<File>>;  ///< that are each number

  void require_each(const Packing& packing, const Files& found) const;
  static void require_even(const Packing& packing, const Files& found);
  static void require_chain(const Packing& packing, const Files& found);

  std::map<Packing, Files> found_;
  std::map<std::string, std::string> packings_;  ///< ShardNumber::packing of each path
};

}  // namespace penstock::data
