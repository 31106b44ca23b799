#pragma once

// Where the samples of tar shards lie. The index has one number for each sample: what else there is to know of it, its
// own headers say when it is read.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/tar/shard_list.h"
#include "data/tar/tar_shard.h"
#include "penstock/source.h"

namespace penstock::data {

/// All shards of a dataset. Immutable; thread-safe.
class TarIndex {
 public:
  /// Opens all shards and finds their samples: in what was kept of the same version of a shard, in an index beside it
  /// (`NAME.tar.idx`, as Energon writes them), or by reading its headers. Threads share the shards. A shard that ends
  /// within a member has that sample too, whose read says so. Errors as open_source and TarWalk give; kUnsupported for
  /// a compressed shard, and where shards have members and no sample; kCorrupt where a list tells another number of
  /// samples.
  TarIndex(const ShardList& list, const TarIndexOptions& options);

  std::int64_t size() const noexcept { return size_; }
  std::span<const TarShard> shards() const noexcept { return shards_; }
  /// The shard of sample `index`, which is in [0, size()).
  const TarShard& shard_of(std::int64_t index) const noexcept;
  /// What the program is to be warned of: what ShardRemarks says.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  std::vector<std::string> open_all(const ShardList& list);

  std::vector<TarShard> shards_;
  std::int64_t size_ = 0;
  std::vector<std::string> warnings_;
};

struct TarScan {
  std::vector<std::uint64_t> begins = {};  ///< of the samples, and the end of the last one
  format::TarStrays strays = {};
  bool has_end = true;   ///< as TarSampleWalk says
  bool is_told = false;  ///< by an index beside the shard
};
/// What a shard's headers say. `ahead`: as TarWindow takes it.
TarScan scan_samples(const penstock::Source& source, std::size_t ahead = 0);

}  // namespace penstock::data
