#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/scan/kept_file.h"
#include "data/tar/tar_shard.h"
#include "penstock/source.h"

namespace penstock::data {

/// Whether these can be the begins of a shard's samples and the end of the last one: rising whole blocks inside of it.
/// The end may lie behind a shard that was cut.
bool may_be_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes) noexcept;

/// What was found out of shards in an earlier run. A shard is known by its path and version: of a file the size, the
/// time of its last change and its number in the file system; of an object the size and what the server calls the
/// version. Objects without such a name, and URLs with a secret, are not kept. `find` may be called by any threads.
class KeptIndex {
 public:
  KeptIndex(const TarIndexOptions& options, std::span<const std::string> paths);

  /// What tells this version of a shard from others; empty where nothing does.
  static std::string version_of(const penstock::Source& source);
  /// The begins of shard `number` of this version, which has so many bytes, if they are known.
  std::optional<std::vector<std::uint64_t>> find(std::size_t number, const std::string& version,
                                                 std::uint64_t bytes) const;
  /// Writes all shards down where one of them was not known. As KeptFile::write.
  void keep(std::span<const TarShard> shards, std::span<const std::string> versions) const;

 private:
  struct KnownShard {
    std::string version;
    std::vector<std::uint64_t> begins;
  };
  void read(std::span<const std::byte> content);

  bool is_kept_;
  std::string key_;
  std::optional<KeptFile> file_;
  std::vector<std::string> names_;           ///< of each shard: where it lies
  std::map<std::string, KnownShard> known_;  ///< by name
};

}  // namespace penstock::data
