// Two things decide how fast elements of a few bytes are copied: that the loop runs along the longer dimension, and
// that the compiler knows the width. Runs that are contiguous on both sides are taken as elements themselves, because
// the pixels of a picture whose channels lie innermost are no more than that: three bytes.

#include "ops/copy_plane.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace penstock::ops {
namespace {

/// Elements of the longer dimension between two visits to the same cache lines, where the other one is short.
constexpr std::int64_t kShortBlock = 2048;
/// A row of fewer elements costs more to begin than to copy.
constexpr std::int64_t kFew = 8;

template <std::size_t kWidth>
void copy_elements(const Dim& dim, const std::byte* from, std::byte* to) noexcept {
  for (std::int64_t i = 0; i < dim.size; ++i) std::memcpy(to + i * dim.to, from + i * dim.from, kWidth);
}

/// The elements of a word in the opposite order.
template <std::size_t kWidth>
[[gnu::always_inline]] inline std::uint64_t reversed(std::uint64_t word) noexcept {
  if constexpr (kWidth == 1) return __builtin_bswap64(word);
  const std::uint64_t halves = word << 32U | word >> 32U;
  if constexpr (kWidth == 4) return halves;
  constexpr std::uint64_t kLower = 0x0000FFFF0000FFFF;
  return (halves & kLower) << 16U | (halves >> 16U & kLower);
}

/// Elements that lie side by side, in `from` the last one first, as in a picture that is flipped. A word at a time.
template <std::size_t kWidth>
void copy_reversed(std::int64_t size, const std::byte* from, std::byte* to) noexcept {
  constexpr auto kApart = static_cast<std::int64_t>(kWidth);
  constexpr std::int64_t kLanes = sizeof(std::uint64_t) / kWidth;
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    std::uint64_t word = 0;
    std::memcpy(&word, from - (i + kLanes - 1) * kApart, sizeof word);
    word = reversed<kWidth>(word);
    std::memcpy(to + i * kApart, &word, sizeof word);
  }
  for (; i < size; ++i) std::memcpy(to + i * kApart, from - i * kApart, kWidth);
}

/// Elements of a width that is that of a register.
template <std::size_t kWidth>
void copy_machine_elements(const Dim& dim, const std::byte* from, std::byte* to) noexcept {
  constexpr auto kApart = static_cast<std::int64_t>(kWidth);
  if (dim.from == -kApart && dim.to == kApart) return copy_reversed<kWidth>(dim.size, from, to);
  copy_elements<kWidth>(dim, from, to);
}

/// Elements of a width that no register has, which lie side by side in `to`. All but the first and the last are moved
/// by the next wider register: what it stores too much is overwritten by the next element, and what it reads too much
/// lies in a neighbour.
template <std::size_t kWidth, std::size_t kRegister>
void copy_side_by_side(const Dim& dim, const std::byte* from, std::byte* to) noexcept {
  static_assert(kWidth < kRegister && kRegister < 2 * kWidth);
  constexpr auto kApart = static_cast<std::int64_t>(kWidth);
  if (dim.to != kApart || (dim.from < kApart && dim.from > -kApart)) return copy_elements<kWidth>(dim, from, to);
  const std::int64_t last = dim.size - 1;
  std::memcpy(to, from, kWidth);
  for (std::int64_t i = 1; i < last; ++i) std::memcpy(to + i * kApart, from + i * dim.from, kRegister);
  std::memcpy(to + last * kApart, from + last * dim.from, kWidth);
}

}  // namespace

void copy_row(std::size_t width, const Dim& dim, const std::byte* from, std::byte* to) noexcept {
  if (dim.size <= 0) return;
  switch (width) {
    case 1:
      return copy_machine_elements<1>(dim, from, to);
    case 2:
      return copy_machine_elements<2>(dim, from, to);
    case 3:
      return copy_side_by_side<3, 4>(dim, from, to);
    case 4:
      return copy_machine_elements<4>(dim, from, to);
    case 6:
      return copy_side_by_side<6, 8>(dim, from, to);
    case 8:
      return copy_elements<8>(dim, from, to);
    case 12:
      return copy_side_by_side<12, 16>(dim, from, to);
    case 16:
      return copy_elements<16>(dim, from, to);
    default:
      break;
  }
  for (std::int64_t i = 0; i < dim.size; ++i) std::memcpy(to + i * dim.to, from + i * dim.from, width);
}

void copy_plane(std::size_t width, const Dim& outer, const Dim& inner, const std::byte* from, std::byte* to) noexcept {
  const auto apart = static_cast<std::int64_t>(width);
  if (inner.from == apart && inner.to == apart) {
    return copy_row(width * static_cast<std::size_t>(inner.size), outer, from, to);
  }
  if (inner.size < kFew && inner.size < outer.size) return copy_long_plane(width, outer, inner, from, to);
  for (std::int64_t i = 0; i < outer.size; ++i) copy_row(width, inner, from + i * outer.from, to + i * outer.to);
}

void copy_long_plane(std::size_t width, const Dim& longer, const Dim& shorter, const std::byte* from,
                     std::byte* to) noexcept {
  for (std::int64_t i = 0; i < longer.size; i += kShortBlock) {
    const Dim block = {std::min(kShortBlock, longer.size - i), longer.from, longer.to};
    for (std::int64_t j = 0; j < shorter.size; ++j) {
      copy_row(width, block, from + i * longer.from + j * shorter.from, to + i * longer.to + j * shorter.to);
    }
  }
}

}  // namespace penstock::ops
