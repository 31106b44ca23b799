#include "io/side_by_side.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock::io {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;

// How far ahead of the copy lines are asked for, into the rows of the next group too.
constexpr std::size_t kAhead = 4 * kCacheLine;

/// The lines in the first `bytes` of `kRows` rows, by way of a copy of the rows, which stores cannot change; with
/// `kFetch` the lines to come are asked for, those of `next` too. `bytes` is kAhead or more.
struct Plain {
  template <std::size_t kRows, bool kFetch>
  static void copy(const GatherRow* group, const GatherRow* next, std::size_t bytes) noexcept {
    std::array<GatherRow, kRows> rows;
    std::copy_n(group, kRows, rows.begin());
    for (std::size_t at = 0; at < bytes; at += kCacheLine) {
      for (std::size_t i = 0; i < kRows; ++i) {
        const std::size_t ahead = at + kAhead;
        if (kFetch) __builtin_prefetch(ahead < bytes ? rows[i].from + ahead : next[i].from + (ahead - bytes));
        std::memcpy(rows[i].to + at, rows[i].from + at, kCacheLine);
      }
    }
  }
};

#if defined(__x86_64__)

/// The same but for its registers: code for an instruction set that the rest of the program may not use cannot be made
/// from one template.
struct Avx2 {
  template <std::size_t kRows, bool kFetch>
  __attribute__((target("avx2"))) static void copy(const GatherRow* group, const GatherRow* next,
                                                   std::size_t bytes) noexcept {
    std::array<GatherRow, kRows> rows;
    std::copy_n(group, kRows, rows.begin());
    for (std::size_t at = 0; at < bytes; at += kCacheLine) {
      for (std::size_t i = 0; i < kRows; ++i) {
        const std::size_t ahead = at + kAhead;
        if (kFetch) __builtin_prefetch(ahead < bytes ? rows[i].from + ahead : next[i].from + (ahead - bytes));
        const auto* const from = reinterpret_cast<const __m256i*>(rows[i].from + at);
        auto* const to = reinterpret_cast<__m256i*>(rows[i].to + at);
        const __m256i first = _mm256_loadu_si256(from);
        const __m256i second = _mm256_loadu_si256(from + 1);
        _mm256_storeu_si256(to, first);
        _mm256_storeu_si256(to + 1, second);
      }
    }
  }
};

#endif

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
  const std::size_t lines = row_bytes / kCacheLine * kCacheLine;
  // Rows a multiple of a page apart share sets of the nearest cache: fewer at once, and nothing fetched ahead, which
  // would push the others out.
  if (row_bytes % kPage == 0) {
    copy_groups<By, 4, false>(rows, lines);
  } else {
    copy_groups<By, 8, true>(rows, lines);
  }
  if (lines == row_bytes) return;
  for (const GatherRow& row : rows) std::memcpy(row.to + lines, row.from + lines, row_bytes - lines);
}

SideBySide avx2() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return {kAhead, copy<Avx2>};
#endif
  return {};
}

}  // namespace

std::array<SideBySide, 2> side_by_side_copies() noexcept { return {avx2(), SideBySide{1024, copy<Plain>}}; }

}  // namespace penstock::io
