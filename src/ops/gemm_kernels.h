#pragma once

// Products of matrices on the host, by Eigen.

#include <cstdint>

namespace penstock::ops {

/// A matrix in host memory: elements aligned to their type; strides in elements, one of them 1.
struct MatrixView {
  const void* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// c = a b, where c is contiguous in C order and all sizes are positive.
using Gemm = void (*)(const MatrixView& a, const MatrixView& b, void* c);

enum class GemmType : std::uint8_t { kFloat32, kFloat64, kComplex64, kComplex128 };

// This header names no other of Penstock's: inline functions that sources for special processors share with others
// might be linked from there.

/// Eigen compiled for any processor, and for those with AVX2 and FMA: null where this one has not both.
Gemm baseline_gemm(GemmType type) noexcept;
Gemm avx2_gemm(GemmType type) noexcept;

}  // namespace penstock::ops
