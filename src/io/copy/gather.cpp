// Rows that a shuffled batch takes from a mapped array lie anywhere in memory. The processor's own prefetchers expect
// nothing there, so the time goes into waiting for the first lines of each row. Asking for several rows at once hides
// most of that: rows of medium size are copied side by side (io/copy/interleaved_copy.h), and for all others the first
// lines of later rows are prefetched while one is copied. Small rows are copied piece by piece without a call, because
// a call takes as long as the copy.

#include "io/copy/gather.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "io/copy/copy.h"
#include "io/copy/guarded.h"
#include "io/copy/interleaved_copy.h"

namespace penstock::io {
namespace {

// How much is prefetched: the processor's own prefetchers follow from there. More lines, or rows much further ahead,
// measured slower, and so did stores past the cache.
constexpr std::size_t kLinesAhead = 8;
constexpr std::size_t kBytesAhead = 4096;
constexpr std::size_t kMaxRowsAhead = 16;

const InterleavedCopy& fastest_side_by_side() noexcept {
  static const InterleavedCopy fastest = [] {
    const auto copies = interleaved_copies();
    return copies[0].copy != nullptr ? copies[0] : copies[1];
  }();
  return fastest;
}

class Rows final : public GuardedMemory {
 public:
  Rows(std::span<const GatherRow> rows, std::size_t row_bytes)
      : rows_(rows),
        row_bytes_(row_bytes),
        ahead_(std::clamp<std::size_t>(kBytesAhead / row_bytes, 1, kMaxRowsAhead)) {}

  bool contains(const std::byte* address) const noexcept override {
    for (const GatherRow& row : rows_) {
      if (address >= row.from && address < row.from + row_bytes_) return true;
    }
    return false;
  }

  void read() const noexcept override {
    if (row_bytes_ <= kSmallest * kPieces.size()) return copy_small();
    if (row_bytes_ < side_by_side_.least_bytes || row_bytes_ > kInterleavedUpTo) {
      return each([bytes = row_bytes_](const GatherRow& row) { std::memcpy(row.to, row.from, bytes); });
    }
    side_by_side_.copy(rows_, row_bytes_);
  }

 private:
  static constexpr std::size_t kSmallest = 16;  ///< bytes of a piece, but in rows that are shorter
  using Way = void (Rows::*)() const noexcept;

  template <class Copy>
  void each(Copy copy) const noexcept {
    const std::size_t window = std::min(row_bytes_, kLinesAhead * kLine);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (i + ahead_ < rows_.size()) {
        const std::byte* next = rows_[i + ahead_].from;
        for (std::size_t at = 0; at < window; at += kLine) __builtin_prefetch(next + at);
      }
      copy(rows_[i]);
    }
  }

  /// The last of the pieces ends with the row, so that it may lie over a part of the one before.
  template <std::size_t kBytes, std::size_t kCount>
  void copy_pieces() const noexcept {
    each([last = row_bytes_ - kBytes](const GatherRow& row) {
      for (std::size_t i = 0; i + 1 < kCount; ++i) std::memcpy(row.to + i * kBytes, row.from + i * kBytes, kBytes);
      std::memcpy(row.to + last, row.from + last, kBytes);
    });
  }

  void copy_small() const noexcept {
    switch (std::bit_floor(row_bytes_)) {
      case 1:
        return copy_pieces<1, 1>();
      case 2:
        return copy_pieces<2, 2>();
      case 4:
        return copy_pieces<4, 2>();
      case 8:
        return copy_pieces<8, 2>();
      default:
        return (this->*kPieces[(row_bytes_ - 1) / kSmallest])();
    }
  }

  template <std::size_t... kIndex>
  static constexpr std::array<Way, sizeof...(kIndex)> pieces(std::index_sequence<kIndex...>) {
    return {&Rows::copy_pieces<kSmallest, kIndex + 1>...};
  }
  static constexpr std::size_t kMostPieces = 16;
  static const std::array<Way, kMostPieces> kPieces;

  std::span<const GatherRow> rows_;
  std::size_t row_bytes_;
  std::size_t ahead_;
  const InterleavedCopy& side_by_side_ = fastest_side_by_side();
};

constexpr std::array<Rows::Way, Rows::kMostPieces> Rows::kPieces = pieces(std::make_index_sequence<kMostPieces>());

}  // namespace

void gather(std::span<const GatherRow> rows, std::size_t row_bytes) noexcept {
  if (!rows.empty() && row_bytes != 0) Rows(rows, row_bytes).read();
}

void guarded_gather(std::span<const GatherRow> rows, std::size_t row_bytes, std::string_view path) {
  if (rows.empty() || row_bytes == 0) return;
  if (!read_guarded(Rows(rows, row_bytes))) throw_vanished(path);
}

}  // namespace penstock::io
