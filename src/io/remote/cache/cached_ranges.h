#pragma once

// Between a RemoteSource and the server: ranges come from the blocks that the cache on disk has (block_cache.h), and
// only the rest is asked for.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "io/copy/scatter.h"
#include "io/remote/cache/block_cache.h"

namespace penstock::io::remote {

/// A run of an object and where its bytes go.
struct ObjectRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<Scatter> parts = {};  ///< `bytes` in all
};

/// Reads ranges of one version of an object: from the cache what it has, and the rest in whole blocks, which the cache
/// has from then on. Parts of a load begin anywhere, so that two threads may want one block at once: then one fetches
/// it, and the other waits. Thread-safe.
class CachedRanges {
 public:
  /// Brings ranges from the server, all at once.
  using Fetch = std::function<void(std::span<const ObjectRange> ranges)>;

  CachedRanges(std::shared_ptr<const BlockCache> cache, CachedObject object)
      : cache_(std::move(cache)), object_(std::move(object)) {}

  void read(std::span<const ObjectRange> ranges, const Fetch& fetch) const;

 private:
  class Reading;
  std::shared_ptr<const BlockCache> cache_;
  CachedObject object_;
};

}  // namespace penstock::io::remote
