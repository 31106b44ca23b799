// Our declarations of cuBLAS's interface against NVIDIA's own header, where one is installed.
#include "device/cuda/cublas_api.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "device/cuda/cublas.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

namespace penstock::device::cuda {
namespace {

static_assert(kBlasSuccess == CUBLAS_STATUS_SUCCESS && kBlasNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kBlasAllocFailed == CUBLAS_STATUS_ALLOC_FAILED && kBlasInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kBlasArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH && kBlasMappingError == CUBLAS_STATUS_MAPPING_ERROR);
static_assert(kBlasExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(kBlasInternalError == CUBLAS_STATUS_INTERNAL_ERROR);
static_assert(kBlasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED && kBlasLicenseError == CUBLAS_STATUS_LICENSE_ERROR);
static_assert(kBlasAsItIs == CUBLAS_OP_N && kBlasTransposed == CUBLAS_OP_T);
static_assert(kBlasFloat32 == CUDA_R_32F && kBlasFloat64 == CUDA_R_64F && kBlasFloat16 == CUDA_R_16F);
static_assert(kBlasComplex64 == CUDA_C_32F && kBlasComplex128 == CUDA_C_64F && kBlasBFloat16 == CUDA_R_16BF);
static_assert(kBlasComputeFloat32 == CUBLAS_COMPUTE_32F && kBlasComputeFloat64 == CUBLAS_COMPUTE_64F);
static_assert(kBlasAnyAlgorithm == CUBLAS_GEMM_DEFAULT);
static_assert(kBlasSumsInFull == (CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
static_assert(kBlasMajor == MAJOR_VERSION && kBlasMinor == MINOR_VERSION && kBlasPatch == PATCH_LEVEL);

/// Equal but for the names of handle types and enumerations.
template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class... A, class... B>
struct Same<cublasStatus_t (*)(A...), ::cublasStatus_t (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) &&
                         ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...)> {};

#define PENSTOCK_SAME(member, name) static_assert(Same<decltype(Cublas::member), decltype(&name)>::value, #name)
PENSTOCK_SAME(create, cublasCreate_v2);
PENSTOCK_SAME(destroy, cublasDestroy_v2);
PENSTOCK_SAME(set_stream, cublasSetStream_v2);
PENSTOCK_SAME(set_math_mode, cublasSetMathMode);
PENSTOCK_SAME(property, cublasGetProperty);
#undef PENSTOCK_SAME
static_assert(std::is_same_v<decltype(::cublasGetStatusName(CUBLAS_STATUS_SUCCESS)), const char*>);

/// The one of its overloads that the library has; the header has another for old callers.
using Gemm = ::cublasStatus_t (*)(::cublasHandle_t, ::cublasOperation_t, ::cublasOperation_t, int, int, int,
                                  const void*, const void*, ::cudaDataType, int, long long, const void*, ::cudaDataType,
                                  int, long long, const void*, void*, ::cudaDataType, int, long long, int,
                                  ::cublasComputeType_t, ::cublasGemmAlgo_t);
static_assert(std::is_same_v<decltype(static_cast<Gemm>(&::cublasGemmStridedBatchedEx)), Gemm>);
static_assert(Same<decltype(Cublas::multiply), Gemm>::value);

TEST(CublasApi, IsNvidias) { SUCCEED(); }

}  // namespace
}  // namespace penstock::device::cuda
#else
TEST(CublasApi, IsNvidias) { GTEST_SKIP() << "there is no cublas_v2.h; PENSTOCK_CUBLAS_HEADERS names its folder"; }
#endif
