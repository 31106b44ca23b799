#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>

namespace penstock::core {

/// Bounds a walk that visits a shared part once for each way that leads to it, as names in a flat file or the places of
/// a batch ask for. Twenty dicts that each hold the next one twice are a million ways; sixty would never end.
///
/// A walk is refused when it costs more than 16 MiB and more than 16 times what its parts cost once: content whose
/// parts are not shared never is. Not thread-safe.
class SharedWalk {
 public:
  /// `advice` ends the error: what asks for each way by itself, and what to do instead.
  explicit SharedWalk(std::string advice) : advice_(std::move(advice)) {}

  /// One more way to the container `part`, which has `items` items; `text` bytes are made of their names. kLimit when
  /// the walk costs too much. `part` must stay alive as long as this: another container at its address is taken for it.
  void visit(const void* part, std::uint64_t items, std::uint64_t text = 0) {
    const std::uint64_t cost = cost_of(items, text);
    items_ += items;
    // Most walks end here: nothing is kept of what is too small to matter.
    if (cost < kUncounted - uncounted_) {
      uncounted_ += cost;
    } else {
      count(part, cost);
    }
  }

 private:
  static constexpr std::uint64_t kUncounted = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kAlways = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kGrowth = 16;

  static std::uint64_t cost_of(std::uint64_t items, std::uint64_t text);
  void count(const void* part, std::uint64_t cost);

  std::string advice_;
  std::uint64_t items_ = 0;  ///< visited, all ways
  std::uint64_t uncounted_ = 0;
  std::uint64_t all_ = 0;   ///< cost of all ways that are counted
  std::uint64_t once_ = 0;  ///< of the first of them to each part
  std::unordered_set<const void*> known_;
};

}  // namespace penstock::core
