#pragma once

// Samples in the order of their shards, behind URLs. A batch is small beside what a request should bring, so whoever
// reads in order is given large runs, which are asked for before they are wanted.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/tar/tar_index.h"
#include "io/move/background_read.h"

namespace penstock::data {

/// What all workers that read one dataset of shards share. Thread-safe.
class OrderedReads {
 public:
  /// A sample that lies from `begin` to `end` of that shard.
  struct Wanted {
    std::size_t shard = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::span<std::byte> into = {};
  };

  /// `shards` outlive it.
  explicit OrderedReads(std::span<const TarShard> shards) : shards_(shards) {}

  /// Fills all of these, which are samples that follow one another, where those before them were read in order too;
  /// else false, and nothing is done. Throws what reading them met; kCancelled.
  bool read(std::span<const Wanted> wanted);

 private:
  struct Piece {
    std::size_t shard;
    std::shared_ptr<io::BackgroundRead> read;
  };
  /// Where samples that were read in order end, and how many they were.
  struct Front {
    std::size_t shard;
    std::uint64_t end;
    std::size_t samples;
  };

  bool goes_on(std::span<const Wanted> wanted);
  std::vector<Piece> pieces_for(std::span<const Wanted> wanted);
  Piece piece(std::size_t shard, std::uint64_t number, bool is_needed);
  void forget();
  void ask_behind(std::size_t shard, std::uint64_t number);

  std::span<const TarShard> shards_;
  std::mutex mutex_;
  std::deque<Front> fronts_;  ///< the last one first
  std::deque<Piece> pieces_;  ///< the one that was asked for last is the last
  std::size_t ahead_ = 1;     ///< pieces behind the one that is used; grows while it goes on
};

}  // namespace penstock::data
