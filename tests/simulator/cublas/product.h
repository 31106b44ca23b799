#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/simulator.h"

namespace penstock::simulator {

/// The argument of the kernel: C = alpha op(A) op(B) + beta C for each matrix of a batch, column by column; distances
/// in elements. Addresses are aligned words, which the driver turns into ones that may be used.
struct SimProduct {
  const std::byte* a;
  const std::byte* b;
  std::byte* c;
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldc;
  std::int64_t stride_a, stride_b, stride_c;
  std::int64_t batch;
  double alpha;
  double beta;
  int type;
  bool transposed_a;
  bool transposed_b;
  /// Sums may be rounded to the type of the result on the way, as cuBLAS's split sums are.
  bool rounds_sums;
};

inline constexpr const char* kProductEntry = "penstock_sim_product";

/// Bytes of an element of a cudaDataType_t; 0 of one that is not known.
std::size_t element_bytes(int type) noexcept;

/// The kernel.
void run_product(const PenstockSimLaunch* launch);

}  // namespace penstock::simulator
