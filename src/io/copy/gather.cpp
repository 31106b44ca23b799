// Rows that a shuffled batch takes from a mapped array lie anywhere in memory. The processor's own prefetchers expect
// nothing there, so the time goes into waiting for the first lines of each row. Asking for several rows at once hides
// most of that: rows of medium size are copied side by side (io/copy/interleaved_copy.h), and for all others the first
// lines of later rows are prefetched while one is copied.

#include "io/copy/gather.h"

#include <algorithm>
#include <cstring>

#include "io/copy/guarded.h"
#include "io/copy/interleaved_copy.h"

namespace penstock::io {
namespace {

constexpr std::size_t kCacheLine = 64;

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
    switch (row_bytes_) {
      case 1:
        return copy_rows<1>();
      case 2:
        return copy_rows<2>();
      case 4:
        return copy_rows<4>();
      case 8:
        return copy_rows<8>();
      case 16:
        return copy_rows<16>();
      default:
        break;
    }
    if (row_bytes_ < side_by_side_.least_bytes || row_bytes_ > kInterleavedUpTo) return copy_rows<0>();
    side_by_side_.copy(rows_, row_bytes_);
  }

 private:
  /// `kBytes`: the size of a row where the compiler shall know it, else 0.
  template <std::size_t kBytes>
  void copy_rows() const noexcept {
    const std::size_t bytes = kBytes != 0 ? kBytes : row_bytes_;
    const std::size_t window = std::min(bytes, kLinesAhead * kCacheLine);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (i + ahead_ < rows_.size()) {
        const std::byte* next = rows_[i + ahead_].from;
        for (std::size_t at = 0; at < window; at += kCacheLine) __builtin_prefetch(next + at);
      }
      std::memcpy(rows_[i].to, rows_[i].from, bytes);
    }
  }

  std::span<const GatherRow> rows_;
  std::size_t row_bytes_;
  std::size_t ahead_;
  const InterleavedCopy& side_by_side_ = fastest_side_by_side();
};

}  // namespace

void gather(std::span<const GatherRow> rows, std::size_t row_bytes) noexcept {
  if (!rows.empty() && row_bytes != 0) Rows(rows, row_bytes).read();
}

void guarded_gather(std::span<const GatherRow> rows, std::size_t row_bytes, std::string_view path) {
  if (rows.empty() || row_bytes == 0) return;
  if (!read_guarded(Rows(rows, row_bytes))) throw_vanished(path);
}

}  // namespace penstock::io
