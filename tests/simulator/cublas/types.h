#pragma once

#include "simulator/driver_types.h"

// cuBLAS's binary interface as the simulation and its tests see it, declared without looking at production's
// declarations. Names and numbers: docs.nvidia.com/cuda/cublas.

extern "C" {
using cublasStatus_t = int;
using cublasHandle_t = struct SimCublasHandle*;
}

namespace penstock::simulator {

enum BlasStatus : cublasStatus_t {
  kBlasSuccess = 0,
  kBlasNotInitialized = 1,
  kBlasAllocFailed = 3,
  kBlasInvalidValue = 7,
  kBlasExecutionFailed = 13,
  kBlasNotSupported = 15,
};

// cublasOperation_t
inline constexpr int kBlasN = 0;
inline constexpr int kBlasT = 1;
inline constexpr int kBlasC = 2;

// cudaDataType_t
inline constexpr int kR32F = 0;
inline constexpr int kR64F = 1;
inline constexpr int kR16F = 2;
inline constexpr int kR16BF = 14;

// cublasComputeType_t
inline constexpr int kCompute32F = 68;
inline constexpr int kCompute64F = 70;

/// CUBLAS_GEMM_DEFAULT
inline constexpr int kGemmDefault = -1;
/// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
inline constexpr int kMathFullReduction = 16;

/// cublasGemmStridedBatchedEx
using BlasGemm = cublasStatus_t(cublasHandle_t, int, int, int, int, int, const void*, const void*, int, int, long long,
                                const void*, int, int, long long, const void*, void*, int, int, long long, int, int,
                                int);

}  // namespace penstock::simulator
