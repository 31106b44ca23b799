#pragma once

// The product of matrices where there is no cuBLAS: squares of kMatmulTile in each thread's registers.

#include <cstdint>

#include "ops/kernels/elements.h"

namespace penstock::ops {

/// Where a thread's square lies.
struct Square {
  std::int64_t row;
  std::int64_t column;
  std::uint64_t entry;
};

PENSTOCK_DEVICE inline Square square_of(const MatmulKernel& p, std::uint64_t i) {
  const std::uint64_t across = static_cast<std::uint64_t>((p.columns + kMatmulTile - 1) / kMatmulTile);
  const std::uint64_t down = static_cast<std::uint64_t>((p.rows + kMatmulTile - 1) / kMatmulTile);
  return {static_cast<std::int64_t>(i / across % down) * kMatmulTile,
          static_cast<std::int64_t>(i % across) * kMatmulTile, i / across / down};
}

template <class T>
PENSTOCK_DEVICE inline void multiply_square(const MatmulKernel& p, std::uint64_t i) {
  const Square square = square_of(p, i);
  const Offsets batch = offsets(p.batch, p.a_batch, p.b_batch, square.entry);
  constexpr std::int64_t width = sizeof(T);
  const std::byte* const a = p.a + batch.first;
  const std::byte* const b = p.b + batch.second;
  T sums[kMatmulTile][kMatmulTile] = {};
  for (std::int64_t k = 0; k < p.depth; ++k) {
    T left[kMatmulTile];
    T right[kMatmulTile];
    PENSTOCK_UNROLL
    for (int t = 0; t < kMatmulTile; ++t) {
      // Beyond the edge the last row or column again; what it makes is not written.
      const std::int64_t row = square.row + t < p.rows ? square.row + t : p.rows - 1;
      const std::int64_t column = square.column + t < p.columns ? square.column + t : p.columns - 1;
      left[t] = read<T>(a + (row * p.a_row_stride + k * p.a_column_stride) * width);
      right[t] = read<T>(b + (k * p.b_row_stride + column * p.b_column_stride) * width);
    }
    PENSTOCK_UNROLL
    for (int r = 0; r < kMatmulTile; ++r) {
      PENSTOCK_UNROLL
      for (int c = 0; c < kMatmulTile; ++c) sums[r][c] = Add::apply(sums[r][c], Multiply::apply(left[r], right[c]));
    }
  }
  PENSTOCK_UNROLL
  for (int r = 0; r < kMatmulTile; ++r) {
    PENSTOCK_UNROLL
    for (int c = 0; c < kMatmulTile; ++c) {
      const std::int64_t row = square.row + r;
      const std::int64_t column = square.column + c;
      if (row >= p.rows || column >= p.columns) continue;
      const std::int64_t at = (static_cast<std::int64_t>(square.entry) * p.rows + row) * p.columns + column;
      write(p.to + at * width, sums[r][c]);
    }
  }
}

}  // namespace penstock::ops
