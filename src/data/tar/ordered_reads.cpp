// Shards are cut into pieces of one size. Workers read batches that lie side by side at the same time and in any order,
// so pieces are kept while the last few batches may want them. Nothing is asked ahead before a few samples were read in
// order, because a sampler that draws neighbours together would pay for bytes that nobody wants.
#include "data/tar/ordered_reads.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::data {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
/// With those that are kept for other workers, what a dataset takes: 48 MiB.
constexpr std::size_t kMostAhead = 8;
constexpr std::size_t kMostPieces = 12;
/// Of one batch; more is large runs already.
constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
/// Samples in order before it is called an order.
constexpr std::size_t kLeastSamples = 8;
/// Batches that workers may have begun at once.
constexpr std::size_t kMostFronts = 32;

/// Where its last sample ends.
std::uint64_t end_of(const TarShard& shard) { return std::min(shard.begins.back(), shard.bytes); }

}  // namespace

bool OrderedReads::read(std::span<const Wanted> wanted) {
  std::vector<Piece> pieces;
  std::vector<Piece> dropped;  // whose reads end without the mutex
  {
    const std::scoped_lock lock(mutex_);
    if (!goes_on(wanted)) return false;
    pieces = pieces_for(wanted);
    while (pieces_.size() > kMostPieces) {
      dropped.push_back(std::move(pieces_.front()));
      pieces_.pop_front();
    }
  }
  for (const Wanted& one : wanted) {
    for (const Piece& piece : pieces) {
      const std::uint64_t begin = std::max(one.begin, piece.read->begin());
      const std::uint64_t end = std::min(one.end, piece.read->end());
      if (piece.shard != one.shard || begin >= end) continue;
      const std::span<const std::byte> bytes = piece.read->bytes();
      std::memcpy(one.into.data() + (begin - one.begin), bytes.data() + (begin - piece.read->begin()),
                  static_cast<std::size_t>(end - begin));
    }
  }
  if (wanted.back().shard + 1 == shards_.size() && wanted.back().end >= end_of(shards_.back())) forget();
  return true;
}

void OrderedReads::forget() {
  std::deque<Piece> held;  // whose reads end without the mutex
  const std::scoped_lock lock(mutex_);
  held.swap(pieces_);
  ahead_ = 1;
}

/// Whether these follow others, by a front or by what is held. Moves the front.
bool OrderedReads::goes_on(std::span<const Wanted> wanted) {
  const Wanted& first = wanted.front();
  const bool begins_shard = first.begin == shards_[first.shard].begins.front();
  const auto front = std::find_if(fronts_.begin(), fronts_.end(), [&](const Front& one) {
    if (one.shard == first.shard) return one.end == first.begin;
    return begins_shard && one.shard + 1 == first.shard && one.end == end_of(shards_[one.shard]);
  });
  const bool is_held = std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.shard == first.shard && piece.read->begin() <= first.begin && first.begin < piece.read->end();
  });
  Front moved{wanted.back().shard, wanted.back().end, wanted.size()};
  bool out = is_held;
  if (front != fronts_.end()) {
    out = out || front->samples >= kLeastSamples;
    moved.samples += front->samples;
    fronts_.erase(front);
  }
  fronts_.push_front(moved);
  if (fronts_.size() > kMostFronts) fronts_.pop_back();
  std::uint64_t bytes = 0;
  for (const Wanted& one : wanted) bytes += one.end - one.begin;
  return out && bytes <= kMostBytes;
}

std::vector<OrderedReads::Piece> OrderedReads::pieces_for(std::span<const Wanted> wanted) {
  std::vector<Piece> out;
  for (const Wanted& one : wanted) {
    for (std::uint64_t number = one.begin / kPiece; number * kPiece < one.end; ++number) {
      const bool is_there =
          !out.empty() && out.back().shard == one.shard && out.back().read->begin() == number * kPiece;
      if (!is_there) out.push_back(piece(one.shard, number, true));
    }
  }
  if (!out.empty()) ask_behind(out.back().shard, out.back().read->begin() / kPiece);
  return out;
}

/// Asks for it where it is not held.
OrderedReads::Piece OrderedReads::piece(std::size_t shard, std::uint64_t number, bool is_needed) {
  const std::uint64_t begin = number * kPiece;
  const auto held = std::find_if(pieces_.begin(), pieces_.end(),
                                 [&](const Piece& one) { return one.shard == shard && one.read->begin() == begin; });
  if (held != pieces_.end()) return *held;
  // Whoever has to wait for a piece is faster than what was asked ahead.
  if (is_needed) ahead_ = std::min(ahead_ * 2, kMostAhead);
  const auto bytes = static_cast<std::size_t>(std::min(kPiece, shards_[shard].bytes - begin));
  pieces_.push_back({shard, std::make_shared<io::BackgroundRead>(shards_[shard].file->source(), begin, bytes)});
  return pieces_.back();
}

void OrderedReads::ask_behind(std::size_t shard, std::uint64_t number) {
  for (std::size_t i = 0; i < ahead_; ++i) {
    if (++number * kPiece >= shards_[shard].bytes) {
      if (++shard == shards_.size() || !shards_[shard].file->reads_at_once() || shards_[shard].bytes == 0) return;
      number = 0;
    }
    piece(shard, number, false);
  }
}

}  // namespace penstock::data
