#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sample/held_file.h"
#include "format/tar/sample_name.h"

namespace penstock::data {

/// One shard. Sample i of it lies in [begins[i], begins[i + 1]).
struct TarShard {
  std::string path;
  std::shared_ptr<const HeldFile> file = {};
  std::uint64_t bytes = 0;                 ///< of the file
  std::vector<std::uint64_t> begins = {};  ///< one for each sample, and where the last one ends
  std::int64_t first = 0;                  ///< samples in the shards before
  format::TarStrays strays = {};           ///< where there is no sample
  bool has_end = true;                     ///< as TarSampleWalk says, where it was walked over
  /// Where an index beside it told the begins: whether the samples on both sides of each were found to be two.
  std::shared_ptr<std::atomic<bool>[]> apart = {};

  std::int64_t samples() const noexcept { return static_cast<std::int64_t>(begins.size()) - 1; }
};

struct TarIndexOptions {
  /// Whether the index is kept for the next run, and where: empty for the user's cache.
  bool is_kept = true;
  std::string path = {};
};

}  // namespace penstock::data
