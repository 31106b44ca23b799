#include "ops/gemm.h"

#include <algorithm>

#include "core/processor.h"
#include "ops/element_ops.h"

namespace penstock::ops {
namespace {

/// Row by row of c, so that the innermost loop runs along rows of b and c and vectorises.
template <class T>
[[gnu::always_inline]] inline void multiply_integers(const MatrixView& a, const MatrixView& b, void* c) {
  const T* const left = static_cast<const T*>(a.data);
  const T* const right = static_cast<const T*>(b.data);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    T* const row = static_cast<T*>(c) + i * b.columns;
    std::fill_n(row, b.columns, T{0});
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const T factor = left[i * a.row_stride + k * a.column_stride];
      const T* const from = right + k * b.row_stride;
      for (std::int64_t j = 0; j < b.columns; ++j) {
        row[j] = Add::apply(row[j], Multiply::apply(factor, from[j * b.column_stride]));
      }
    }
  }
}

template <class T>
PENSTOCK_TARGET_AVX2 void avx2_integers(const MatrixView& a, const MatrixView& b, void* c) {
  multiply_integers<T>(a, b, c);
}

template <class T>
void integers(const MatrixView& a, const MatrixView& b, void* c) {
  return core::has_avx2() ? avx2_integers<T>(a, b, c) : multiply_integers<T>(a, b, c);
}

Gemm of_floats(GemmType type) noexcept {
  const Gemm fast = avx2_gemm(type);
  return fast != nullptr ? fast : baseline_gemm(type);
}

}  // namespace

Gemm gemm_for(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kFloat32) return of_floats(GemmType::kFloat32);
  if (type == kFloat64) return of_floats(GemmType::kFloat64);
  if (type == kComplex64) return of_floats(GemmType::kComplex64);
  if (type == kComplex128) return of_floats(GemmType::kComplex128);
  const DType dtype(type);
  if (!dtype.is_integer()) return nullptr;
  switch (dtype.itemsize()) {
    case 1:
      return integers<std::uint8_t>;
    case 2:
      return integers<std::uint16_t>;
    case 4:
      return integers<std::uint32_t>;
    default:
      return integers<std::uint64_t>;
  }
}

}  // namespace penstock::ops
