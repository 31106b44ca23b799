// Our declarations of the driver's interface against NVIDIA's own header, where one is installed.
#include "device/cuda/driver_api.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "device/cuda/driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace penstock::device::cuda {
namespace {

static_assert(kSuccess == CUDA_SUCCESS && kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(kDeinitialized == CUDA_ERROR_DEINITIALIZED && kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE && kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE && kInvalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(kUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(kInvalidImage == CUDA_ERROR_INVALID_IMAGE && kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kJitCompilerNotFound == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(kJitDisabled == CUDA_ERROR_JIT_COMPILATION_DISABLED && kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kNotReady == CUDA_ERROR_NOT_READY && kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(kHostRegistered == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(kHostNotRegistered == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);

static_assert(kAttributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kAttributeIntegrated == CU_DEVICE_ATTRIBUTE_INTEGRATED);
static_assert(kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING && kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kHostPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(kPointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE && kMemoryTypeHost == CU_MEMORYTYPE_HOST);
static_assert(kPointerDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL &&
              kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(kJitErrorLogBuffer == CU_JIT_ERROR_LOG_BUFFER && kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);

static_assert(sizeof(CUdeviceptr) == sizeof(::CUdeviceptr) && sizeof(CUdevice) == sizeof(::CUdevice));
static_assert(sizeof(CUresult) == sizeof(::CUresult));

#if CUDA_VERSION >= 12020
static_assert(kAttributeMemoryPools == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(kAttributeHostNuma == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
static_assert(kPoolReleaseThreshold == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(kPoolReservedNow == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
static_assert(sizeof(CUmemPoolProps) == sizeof(::CUmemPoolProps));
static_assert(offsetof(CUmemPoolProps, location) == offsetof(::CUmemPoolProps, location));
static_assert(offsetof(CUmemPoolProps, max_bytes) == offsetof(::CUmemPoolProps, maxSize));
static_assert(offsetof(CUmemPoolProps, usage) == offsetof(::CUmemPoolProps, usage));
static_assert(CUmemPoolProps{}.allocation == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(CUmemLocation{}.type == CU_MEM_LOCATION_TYPE_DEVICE);
#endif

/// Equal but for the names of handle types, enumerations and results.
template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class... A, class... B>
struct Same<CUresult (*)(A...), ::CUresult (*)(B...)>
    : std::bool_constant<((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...)> {};

#define PENSTOCK_SAME(member, name) static_assert(Same<decltype(Driver::member), decltype(&name)>::value, #name)
PENSTOCK_SAME(init, cuInit);
PENSTOCK_SAME(device_name, cuDeviceGetName);
PENSTOCK_SAME(device_attribute, cuDeviceGetAttribute);
PENSTOCK_SAME(device_total_mem, cuDeviceTotalMem);
PENSTOCK_SAME(context_retain, cuDevicePrimaryCtxRetain);
PENSTOCK_SAME(context_pop, cuCtxPopCurrent);
PENSTOCK_SAME(mem_info, cuMemGetInfo);
PENSTOCK_SAME(mem_alloc, cuMemAlloc);
PENSTOCK_SAME(host_alloc, cuMemHostAlloc);
PENSTOCK_SAME(host_register, cuMemHostRegister);
PENSTOCK_SAME(pointer_attribute, cuPointerGetAttribute);
PENSTOCK_SAME(copy, cuMemcpyAsync);
PENSTOCK_SAME(copy_between, cuMemcpyPeerAsync);
PENSTOCK_SAME(fill, cuMemsetD8Async);
PENSTOCK_SAME(stream_create, cuStreamCreateWithPriority);
PENSTOCK_SAME(stream_wait, cuStreamWaitEvent);
PENSTOCK_SAME(stream_context, cuStreamGetCtx);
PENSTOCK_SAME(context_device, cuCtxGetDevice);
PENSTOCK_SAME(event_create, cuEventCreate);
PENSTOCK_SAME(event_record, cuEventRecord);
PENSTOCK_SAME(launch_host, cuLaunchHostFunc);
PENSTOCK_SAME(module_load, cuModuleLoadDataEx);
PENSTOCK_SAME(module_function, cuModuleGetFunction);
PENSTOCK_SAME(launch, cuLaunchKernel);
PENSTOCK_SAME(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
PENSTOCK_SAME(pool_create, cuMemPoolCreate);
PENSTOCK_SAME(pool_set, cuMemPoolSetAttribute);
PENSTOCK_SAME(pool_trim, cuMemPoolTrimTo);
PENSTOCK_SAME(pool_alloc, cuMemAllocFromPoolAsync);
PENSTOCK_SAME(pool_free, cuMemFreeAsync);
#undef PENSTOCK_SAME

}  // namespace
}  // namespace penstock::device::cuda
#endif

namespace penstock::device::cuda {
namespace {

TEST(Driver, EitherIsThereOrSaysWhyNot) { EXPECT_EQ(find_driver() == nullptr, !why_no_driver().empty()); }

}  // namespace
}  // namespace penstock::device::cuda
