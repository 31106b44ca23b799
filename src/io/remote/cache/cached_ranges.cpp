// A range is cut at the borders of blocks. What of a block the cache has is read from it; a block that it lacks is
// fetched whole, straight into the caller's memory where that takes all of it in one run, else into memory of our own.
// No more than a round of blocks is fetched at a time, so that rows which lie far apart do not take a block of memory
// each.

#include "io/remote/cache/cached_ranges.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "io/remote/cache/claim.h"
#include "io/remote/traffic.h"
#include "penstock/buffer.h"
#include "penstock/error.h"

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

/// Bytes that somebody wants, and not those between them.
std::uint64_t bytes_kept(std::span<const Scatter> parts) noexcept {
  std::uint64_t bytes = 0;
  for (const Scatter& part : parts) bytes += part.to != nullptr ? part.bytes : 0;
  return bytes;
}

}  // namespace

/// One read.
class CachedRanges::Reading {
 public:
  Reading(const CachedRanges& of, const Fetch& fetch) : cache_(*of.cache_), object_(of.object_), fetch_(fetch) {}

  void read(const ObjectRange& range) {
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
      cached_bytes_ += bytes_kept(wanted.parts);
      return;
    }
    missing_[number].wanted.push_back(std::move(wanted));
    if (missing_.size() == kRound) fetch_missing();
  }

  /// Those that another thread is fetching come last: until then it may have kept them.
  void fetch_missing() {
    std::vector<std::uint64_t> numbers;
    std::vector<ClaimedBlock> blocks;
    const std::string object = core::format("{} {}", object_.key, object_.etag);
    for (const auto& [number, block] : missing_) {
      numbers.push_back(number);
      blocks.emplace_back(object, number);
    }
    Claim claim(std::move(blocks));
    std::map<std::uint64_t, Missing> ours;
    for (const std::size_t i : claim.ours()) ours.insert(missing_.extract(numbers[i]));
    fetch(ours);
    claim.end();
    if (missing_.empty()) return;
    claim.wait_for_others();
    for (auto it = missing_.begin(); it != missing_.end();) it = is_kept(*it) ? missing_.erase(it) : std::next(it);
    fetch(missing_);
    missing_.clear();
  }

  bool is_kept(const std::pair<const std::uint64_t, Missing>& block) {
    std::uint64_t bytes = 0;
    for (const Wanted& wanted : block.second.wanted) {
      if (!cache_.read(object_, block.first, wanted.offset, wanted.parts)) return false;
      bytes += bytes_kept(wanted.parts);
    }
    cached_bytes_ += bytes;
    return true;
  }

  void fetch(std::map<std::uint64_t, Missing>& blocks) {
    if (blocks.empty()) return;
    std::vector<ObjectRange> ranges;
    for (auto& [number, block] : blocks) {
      const std::uint64_t offset = number * BlockCache::kBlock;
      const std::uint64_t bytes = place(block, number);
      const bool joins = !ranges.empty() && ranges.back().offset + ranges.back().bytes == offset &&
                         ranges.back().parts.size() < kTogether;
      if (!joins) ranges.push_back({.offset = offset});
      ranges.back().bytes += bytes;
      ranges.back().parts.push_back({block.memory, static_cast<std::size_t>(bytes)});
    }
    fetch_(ranges);
    for (const auto& [number, block] : blocks) {
      const auto bytes = static_cast<std::size_t>(BlockCache::block_bytes(object_, number));
      cache_.keep(object_, number, {block.memory, bytes});
      for (const Wanted& wanted : block.wanted) fill_parts(wanted.parts, block.memory + wanted.offset);
    }
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

void CachedRanges::read(std::span<const ObjectRange> ranges, const Fetch& fetch) const {
  Reading reading(*this, fetch);
  for (const ObjectRange& range : ranges) reading.read(range);
  reading.end();
}

}  // namespace penstock::io::remote
