#pragma once

#include "device/cuda/driver_api.h"

/// The part of cuBLAS's binary interface that Penstock calls: names and numbers as published in its reference manual
/// (docs.nvidia.com/cuda/cublas). tests/device/cuda/cublas_api_test.cpp compares them with NVIDIA's header where that
/// is installed.
namespace penstock::device::cuda {

using cublasStatus_t = int;
using cublasHandle_t = struct cublasContext*;

inline constexpr cublasStatus_t kBlasSuccess = 0;
inline constexpr cublasStatus_t kBlasNotInitialized = 1;
inline constexpr cublasStatus_t kBlasAllocFailed = 3;
inline constexpr cublasStatus_t kBlasInvalidValue = 7;
inline constexpr cublasStatus_t kBlasArchMismatch = 8;
inline constexpr cublasStatus_t kBlasMappingError = 11;
inline constexpr cublasStatus_t kBlasExecutionFailed = 13;
inline constexpr cublasStatus_t kBlasInternalError = 14;
inline constexpr cublasStatus_t kBlasNotSupported = 15;
inline constexpr cublasStatus_t kBlasLicenseError = 16;

// cublasOperation_t
inline constexpr int kBlasAsItIs = 0;
inline constexpr int kBlasTransposed = 1;

// cudaDataType_t
inline constexpr int kBlasFloat32 = 0;
inline constexpr int kBlasFloat64 = 1;
inline constexpr int kBlasFloat16 = 2;
inline constexpr int kBlasBFloat16 = 14;

// cublasComputeType_t
inline constexpr int kBlasComputeFloat32 = 68;
inline constexpr int kBlasComputeFloat64 = 70;

/// CUBLAS_GEMM_DEFAULT
inline constexpr int kBlasAnyAlgorithm = -1;
/// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION beside CUBLAS_DEFAULT_MATH, which has no TF32.
inline constexpr int kBlasSumsInFull = 16;

// libraryPropertyType
inline constexpr int kBlasMajor = 0;
inline constexpr int kBlasMinor = 1;
inline constexpr int kBlasPatch = 2;

}  // namespace penstock::device::cuda
