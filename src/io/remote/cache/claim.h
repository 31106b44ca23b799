#pragma once

// What threads of this process are fetching for the cache: two that want the same at once fetch it once.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::io::remote {

/// A block by its object and number; the opening of an object is one too.
using ClaimedBlock = std::pair<std::string, std::uint64_t>;

/// Those of some blocks that no other thread is fetching; until the end, they are this thread's. It waits for others
/// only then, so that no two wait for each other. In a forked child what the parent's threads claimed does not count.
class Claim {
 public:
  explicit Claim(std::vector<ClaimedBlock> wanted);
  ~Claim() { end(); }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  /// Which of `wanted` are ours, by their places.
  const std::vector<std::size_t>& ours() const noexcept { return ours_; }
  void end();
  /// Until nobody is fetching any of `wanted`. kCancelled within 50 ms of a stop.
  void wait_for_others() const;

 private:
  struct Fetching;
  static Fetching& get();

  Fetching& fetching_;
  std::vector<ClaimedBlock> wanted_;
  std::vector<std::size_t> ours_;
};

}  // namespace penstock::io::remote
