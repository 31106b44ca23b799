#pragma once

// Whether an index that others wrote beside a shard (`.idx`) parts samples where the shard does. A number too many
// makes two samples of one, each of which looks whole; only the key of the one beside it tells. So the last key before
// a number is compared with the first one behind it when a sample on one of its sides is read, once for each number.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/tar/tar_shard.h"

namespace penstock::data {

/// The samples beside those of one batch, in shards whose index is told (TarShard::apart). Not thread-safe.
class TarNeighbours {
 public:
  /// The bytes of a sample of the batch, which stay for as long as this.
  void know(const TarShard& shard, std::size_t sample, std::span<const std::byte> bytes);
  /// A sample of the batch, whose neighbours are to be compared with it.
  void want(const TarShard& shard, std::size_t sample);
  /// Reads what is wanted of all and not known, at once. kCancelled.
  void read();
  /// kChanged where this sample, which has that key, and one beside it are one sample, or where its last member ends
  /// at `end` behind the begin of the next one.
  void require_apart(const TarShard& shard, std::size_t sample, const std::string& key, std::uint64_t end) const;

 private:
  using Place = std::pair<const TarShard*, std::size_t>;

  std::map<Place, std::uint64_t> wanted_;              ///< how many of their first bytes
  std::map<Place, std::span<const std::byte>> known_;  ///< their first bytes; zeros of what could not be read
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace penstock::data
