#pragma once

// cuBLAS, where it is there, for products of matrices; kernels of our own do without.

#include <string>

#include "device/cuda/cublas_api.h"

namespace penstock::device::cuda {

/// The entry points of cuBLAS. Null where optional and missing.
struct Cublas {
  cublasStatus_t (*create)(cublasHandle_t*) = nullptr;
  cublasStatus_t (*destroy)(cublasHandle_t) = nullptr;
  cublasStatus_t (*set_stream)(cublasHandle_t, CUstream) = nullptr;
  cublasStatus_t (*set_math_mode)(cublasHandle_t, int) = nullptr;
  cublasStatus_t (*multiply)(cublasHandle_t, int, int, int, int, int, const void*, const void*, int, int, long long,
                             const void*, int, int, long long, const void*, void*, int, int, long long, int, int,
                             int) = nullptr;

  cublasStatus_t (*property)(int, int*) = nullptr;       // optional
  const char* (*status_name)(cublasStatus_t) = nullptr;  // optional: from 11.4.2

  std::string path;  ///< the file it was opened from

  /// "cuBLAS 12.9.1 (/path/libcublas.so.12)"
  std::string description() const;
  /// "15 (CUBLAS_STATUS_NOT_SUPPORTED)"
  std::string describe(cublasStatus_t status) const;
};

/// The library that PENSTOCK_LIBCUBLAS names; without that one that the process has loaded already, or else that of the
/// system. Opened on the first call and never closed; null where there is none. Calls nothing of it.
const Cublas* find_cublas() noexcept;
/// Why find_cublas() is null, as the rest of a sentence.
std::string why_no_cublas();

}  // namespace penstock::device::cuda
