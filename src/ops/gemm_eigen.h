#pragma once

// Compiled more than once, for different processors: whoever includes this gives Eigen another namespace first, so that
// the linker does not take one processor's functions for another's, nor those of a program with an Eigen of its own.

#define EIGEN_NO_DEBUG
#define EIGEN_MPL2_ONLY

#include <Eigen/Core>
#include <complex>

#include "ops/gemm_kernels.h"

namespace penstock::ops {
namespace {

template <class T, int kOrder>
using Mapped =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, kOrder>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T, int kOrder>
Mapped<T, kOrder> mapped(const MatrixView& view) {
  const std::int64_t outer = kOrder == Eigen::RowMajor ? view.row_stride : view.column_stride;
  return {static_cast<const T*>(view.data), view.rows, view.columns, Eigen::OuterStride<>(outer)};
}

template <class T, int kLeft, int kRight>
void multiply_ordered(const MatrixView& a, const MatrixView& b, T* c) {
  Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> product(c, a.rows, b.columns);
  product.noalias() = mapped<T, kLeft>(a) * mapped<T, kRight>(b);
}

template <class T>
void multiply(const MatrixView& a, const MatrixView& b, void* c) {
  constexpr int row = Eigen::RowMajor;
  constexpr int column = Eigen::ColMajor;
  T* const to = static_cast<T*>(c);
  const bool a_rows = a.column_stride == 1;
  const bool b_rows = b.column_stride == 1;
  if (a_rows) return b_rows ? multiply_ordered<T, row, row>(a, b, to) : multiply_ordered<T, row, column>(a, b, to);
  return b_rows ? multiply_ordered<T, column, row>(a, b, to) : multiply_ordered<T, column, column>(a, b, to);
}

Gemm eigen_gemm(GemmType type) noexcept {
  switch (type) {
    case GemmType::kFloat32:
      return multiply<float>;
    case GemmType::kFloat64:
      return multiply<double>;
    case GemmType::kComplex64:
      return multiply<std::complex<float>>;
    case GemmType::kComplex128:
      return multiply<std::complex<double>>;
  }
  return nullptr;
}

}  // namespace
}  // namespace penstock::ops
