// Copies eight rows at a time: the first line of each, then the second line of each, and so on. While a line is copied,
// lines further on are prefetched, those of the next eight rows included. So the processor waits for many lines of
// memory at once, where a copy of one row after the other waits for one.

#include "io/copy/interleaved_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/processor.h"
#include "io/copy/copy.h"

namespace penstock::io {
namespace {

// Lines at this distance share a set of a first-level cache of 32 KiB in 8 ways, the usual one.
constexpr std::size_t kSetDistance = 4096;

// How far ahead of the copy lines are prefetched.
constexpr std::size_t kAhead = 4 * kLine;

/// All words are loaded before the first is stored. The compiler then uses the widest registers that the function
/// around this one may use.
[[gnu::always_inline]] inline void copy_line(std::byte* to, const std::byte* from) noexcept {
  std::array<std::uint64_t, kLine / sizeof(std::uint64_t)> words;
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], from + i * sizeof(words[i]), sizeof(words[i]));
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(to + i * sizeof(words[i]), &words[i], sizeof(words[i]));
}

/// Copies the lines in the first `bytes` of `kRows` rows. The addresses are copied first, because the compiler cannot
/// know that the stores leave them alone. With `kFetch`, later lines are prefetched, those of `next` too. `bytes` is
/// kAhead or more.
template <std::size_t kRows, bool kFetch>
[[gnu::always_inline]] inline void copy_group(const GatherRow* group, const GatherRow* next,
                                              std::size_t bytes) noexcept {
  std::array<GatherRow, kRows> rows;
  std::copy_n(group, kRows, rows.begin());
  for (std::size_t at = 0; at < bytes; at += kLine) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const std::size_t ahead = at + kAhead;
      if (kFetch) __builtin_prefetch(ahead < bytes ? rows[i].from + ahead : next[i].from + (ahead - bytes));
      copy_line(rows[i].to + at, rows[i].from + at);
    }
  }
}

/// copy_group with what every processor of the kind has, and with wider registers. 64-bit ARM has no others: Plain
/// moves pairs of its 16-byte registers.
struct Plain {
  template <std::size_t kRows, bool kFetch>
  static void copy(const GatherRow* group, const GatherRow* next, std::size_t bytes) noexcept {
    copy_group<kRows, kFetch>(group, next, bytes);
  }
};

struct Avx2 {
  template <std::size_t kRows, bool kFetch>
  PENSTOCK_TARGET_AVX2 static void copy(const GatherRow* group, const GatherRow* next, std::size_t bytes) noexcept {
    copy_group<kRows, kFetch>(group, next, bytes);
  }
};

template <class By, std::size_t kRows, bool kFetch>
void copy_groups(std::span<const GatherRow> rows, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (; rows.size() - at >= kRows; at += kRows) {
    const GatherRow* const group = rows.data() + at;
    By::template copy<kRows, kFetch>(group, rows.size() - at >= 2 * kRows ? group + kRows : group, bytes);
  }
  if constexpr (kRows > 1) copy_groups<By, kRows / 2, kFetch>(rows.subspan(at), bytes);
}

template <class By>
void copy(std::span<const GatherRow> rows, std::size_t row_bytes) {
  const std::size_t lines = row_bytes / kLine * kLine;
  // Rows at such a distance share sets of the first-level cache. Prefetched lines would push the others out there, so
  // fewer rows are copied at once and nothing is prefetched.
  if (row_bytes % kSetDistance == 0) {
    copy_groups<By, 4, false>(rows, lines);
  } else {
    copy_groups<By, 8, true>(rows, lines);
  }
  if (lines == row_bytes) return;
  // The last line lies over a part of the one before, which costs less than a call for the rest alone.
  const std::size_t last = row_bytes - kLine;
  for (const GatherRow& row : rows) copy_line(row.to + last, row.from + last);
}

}  // namespace

std::array<InterleavedCopy, 2> interleaved_copies() noexcept {
  const InterleavedCopy wide = core::has_avx2() ? InterleavedCopy{kAhead, copy<Avx2>} : InterleavedCopy{};
  return {wide, InterleavedCopy{1024, copy<Plain>}};
}

}  // namespace penstock::io
