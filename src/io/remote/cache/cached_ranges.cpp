// A range is cut at the borders of blocks. What of a block the cache has is read from it; a block that it lacks is
// fetched whole, straight into the caller's memory where that takes all of it in one run, else into memory of our own.
// No more than a round of blocks is fetched at a time, so that rows which lie far apart do not take a block of memory
// each.

#include "io/remote/cache/cached_ranges.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "io/remote/traffic.h"
#include "penstock/buffer.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kRound = 64;
/// Blocks that lie side by side are one request of up to so many.
constexpr std::size_t kTogether = 8;

/// What is wanted of one block.
struct Wanted {
  std::uint64_t offset = 0;  ///< in the block
  std::vector<Scatter> parts = {};
};

/// A block that is not in the cache.
struct Missing {
  std::vector<Wanted> wanted = {};
  Buffer own = {};              ///< where nobody's memory takes all of it
  std::byte* memory = nullptr;  ///< where it is fetched to
};

void scatter(const std::byte* block, const Wanted& wanted) {
  const std::byte* from = block + wanted.offset;
  for (const Scatter& part : wanted.parts) {
    if (part.to != nullptr && part.to != from && part.bytes > 0) std::memcpy(part.to, from, part.bytes);
    from += part.bytes;
  }
}

}  // namespace

/// One read.
class CachedRanges::Reading {
 public:
  Reading(const CachedRanges& of, const Fetch& fetch) : cache_(*of.cache_), object_(of.object_), fetch_(fetch) {}

  void read(const Range& range) {
    std::uint64_t at = range.offset;
    Wanted wanted{.offset = at % BlockCache::kBlock};
    for (Scatter part : range.parts) {
      while (part.bytes > 0) {
        const auto room = static_cast<std::size_t>(BlockCache::kBlock - at % BlockCache::kBlock);
        const std::size_t some = std::min(part.bytes, room);
        wanted.parts.push_back({part.to, some});
        at += some;
        part = {part.to != nullptr ? part.to + some : nullptr, part.bytes - some};
        if (some == room) take(at / BlockCache::kBlock - 1, std::exchange(wanted, {}));
      }
    }
    if (!wanted.parts.empty()) take(at / BlockCache::kBlock, std::move(wanted));
  }

  void end() {
    fetch_missing();
    note_traffic({.cached_bytes = cached_bytes_});
  }

 private:
  void take(std::uint64_t number, Wanted wanted) {
    const auto known = missing_.find(number);
    if (known == missing_.end() && cache_.read(object_, number, wanted.offset, wanted.parts)) {
      for (const Scatter& part : wanted.parts) cached_bytes_ += part.to != nullptr ? part.bytes : 0;
      return;
    }
    missing_[number].wanted.push_back(std::move(wanted));
    if (missing_.size() == kRound) fetch_missing();
  }

  void fetch_missing() {
    if (missing_.empty()) return;
    std::vector<Range> ranges;
    for (auto& [number, block] : missing_) {
      const std::uint64_t offset = number * BlockCache::kBlock;
      const std::uint64_t bytes = place(block, number);
      const bool joins = !ranges.empty() && ranges.back().offset + ranges.back().bytes == offset &&
                         ranges.back().parts.size() < kTogether;
      if (!joins) ranges.push_back({.offset = offset});
      ranges.back().bytes += bytes;
      ranges.back().parts.push_back({block.memory, static_cast<std::size_t>(bytes)});
    }
    fetch_(ranges);
    for (const auto& [number, block] : missing_) {
      const auto bytes = static_cast<std::size_t>(BlockCache::block_bytes(object_, number));
      cache_.keep(object_, number, {block.memory, bytes});
      for (const Wanted& wanted : block.wanted) scatter(block.memory, wanted);
    }
    missing_.clear();
  }

  /// Finds memory for the block, and says how many bytes it has.
  std::uint64_t place(Missing& block, std::uint64_t number) const {
    const std::uint64_t bytes = BlockCache::block_bytes(object_, number);
    for (const Wanted& wanted : block.wanted) {
      const Scatter& first = wanted.parts.front();
      if (first.to != nullptr && first.bytes == bytes) block.memory = first.to;
    }
    if (block.memory == nullptr) {
      block.own = Buffer::allocate(static_cast<std::size_t>(bytes));
      block.memory = block.own.data();
    }
    return bytes;
  }

  const BlockCache& cache_;
  const CachedObject& object_;
  const Fetch& fetch_;
  std::map<std::uint64_t, Missing> missing_;
  std::uint64_t cached_bytes_ = 0;
};

void CachedRanges::read(std::span<const Range> ranges, const Fetch& fetch) const {
  Reading reading(*this, fetch);
  for (const Range& range : ranges) reading.read(range);
  reading.end();
}

}  // namespace penstock::io::remote
