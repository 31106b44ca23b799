// Copying a transposed tensor element by element touches each cache line many times, because neighbours on one side are
// far apart on the other. So tiles of whole cache lines are copied: a tile is transposed in vector registers, and each
// line of both sides is touched once.

#include "ops/transpose.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ops/copy_plane.h"

namespace penstock::ops {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kVector = 16;

template <std::size_t kWidth>
struct Word;
template <>
struct Word<1> {
  using Vector [[gnu::vector_size(kVector)]] = std::uint8_t;
};
template <>
struct Word<2> {
  using Vector [[gnu::vector_size(kVector)]] = std::uint16_t;
};
template <>
struct Word<4> {
  using Vector [[gnu::vector_size(kVector)]] = std::uint32_t;
};
template <>
struct Word<8> {
  using Vector [[gnu::vector_size(kVector)]] = std::uint64_t;
};

/// The elements of the lower or upper halves of `a` and `b` in turn.
template <class Vector, int... kIndex>
[[gnu::always_inline]] inline void interleave(Vector a, Vector b, Vector& low, Vector& high,
                                              std::integer_sequence<int, kIndex...>) {
  constexpr int kVectorLanes = sizeof...(kIndex);
  low = __builtin_shufflevector(a, b, (kIndex / 2 + kIndex % 2 * kVectorLanes)...);
  high = __builtin_shufflevector(a, b, (kVectorLanes / 2 + kIndex / 2 + kIndex % 2 * kVectorLanes)...);
}

/// Transposes as many vectors as each has lanes: interleaving the halves of the list log2(lanes) times.
template <class Vector, std::size_t kVectorLanes>
[[gnu::always_inline]] inline void transpose_vectors(std::array<Vector, kVectorLanes>& rows) {
  for (std::size_t step = 1; step < kVectorLanes; step *= 2) {
    std::array<Vector, kVectorLanes> next;
    for (std::size_t i = 0; i < kVectorLanes / 2; ++i) {
      interleave(rows[i], rows[i + kVectorLanes / 2], next[2 * i], next[2 * i + 1],
                 std::make_integer_sequence<int, static_cast<int>(kVectorLanes)>());
    }
    rows = next;
  }
}

/// A square tile of whole cache lines. The source's lines are read into a buffer, because rows a power of two apart
/// would push each other out of the cache before their next part is read.
template <std::size_t kWidth>
void transpose_tile(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step) {
  using Vector = typename Word<kWidth>::Vector;
  constexpr std::size_t kVectorLanes = kVector / kWidth;
  constexpr std::size_t kSide = kLine / kWidth;
  alignas(kLine) std::array<std::byte, kSide * kLine> tile;
  for (std::size_t r = 0; r < kSide; ++r) {
    std::memcpy(&tile[r * kLine], from + static_cast<std::int64_t>(r) * from_step, kLine);
  }
  for (std::size_t column = 0; column < kSide; column += kVectorLanes) {
    for (std::size_t row = 0; row < kSide; row += kVectorLanes) {
      std::array<Vector, kVectorLanes> block;
      for (std::size_t i = 0; i < kVectorLanes; ++i) {
        std::memcpy(&block[i], &tile[(row + i) * kLine + column * kWidth], kVector);
      }
      transpose_vectors(block);
      for (std::size_t i = 0; i < kVectorLanes; ++i) {
        std::memcpy(to + static_cast<std::int64_t>(column + i) * to_step + static_cast<std::int64_t>(row * kWidth),
                    &block[i], kVector);
      }
    }
  }
}

void copy_along_longer(std::size_t width, const Dim& a, const Dim& b, const std::byte* from, std::byte* to) {
  if (a.size < b.size) return copy_long_plane(width, b, a, from, to);
  copy_long_plane(width, a, b, from, to);
}

template <std::size_t kWidth>
void transpose_plane(const Dim& across, const Dim& along, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kSide = kLine / static_cast<std::int64_t>(kWidth);
  const std::int64_t rows = along.size / kSide * kSide;
  const std::int64_t columns = across.size / kSide * kSide;
  for (std::int64_t r = 0; r < rows; r += kSide) {
    for (std::int64_t c = 0; c < columns; c += kSide) {
      transpose_tile<kWidth>(from + r * along.from + c * across.from, along.from, to + r * along.to + c * across.to,
                             across.to);
    }
  }
  // What is left to the right and below.
  const Dim tiled_rows = {rows, along.from, along.to};
  const Dim right = {across.size - columns, across.from, across.to};
  const Dim below = {along.size - rows, along.from, along.to};
  copy_along_longer(kWidth, tiled_rows, right, from + columns * across.from, to + columns * across.to);
  copy_along_longer(kWidth, across, below, from + rows * along.from, to + rows * along.to);
}

}  // namespace

bool can_transpose(std::size_t width) noexcept {
  return width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
}

void transpose(std::size_t width, const Dim& across, const Dim& along, const std::byte* from, std::byte* to) {
  switch (width) {
    case 1:
      return transpose_plane<1>(across, along, from, to);
    case 2:
      return transpose_plane<2>(across, along, from, to);
    case 4:
      return transpose_plane<4>(across, along, from, to);
    case 8:
      return transpose_plane<8>(across, along, from, to);
    default:
      return copy_along_longer(16, across, along, from, to);
  }
}

}  // namespace penstock::ops
