// Our declarations of cuFile's interface against NVIDIA's own header, where one is installed.
#include "io/gds/gds_api.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#if __has_include(<cufile.h>) && __has_include(<cuda.h>)
#include <cufile.h>

namespace penstock::io::gds {
namespace {

static_assert(kSuccess == CU_FILE_SUCCESS && kErrorBase == CUFILEOP_BASE_ERR);
static_assert(kDriverNotInitialized == CU_FILE_DRIVER_NOT_INITIALIZED);
static_assert(kDriverVersionMismatch == CU_FILE_DRIVER_VERSION_MISMATCH);
static_assert(kPlatformNotSupported == CU_FILE_PLATFORM_NOT_SUPPORTED && kIoNotSupported == CU_FILE_IO_NOT_SUPPORTED);
static_assert(kDeviceNotSupported == CU_FILE_DEVICE_NOT_SUPPORTED && kNvfsDriverError == CU_FILE_NVFS_DRIVER_ERROR);
static_assert(kCudaDriverError == CU_FILE_CUDA_DRIVER_ERROR && kCudaPointerInvalid == CU_FILE_CUDA_POINTER_INVALID);
static_assert(kCudaMemoryTypeInvalid == CU_FILE_CUDA_MEMORY_TYPE_INVALID);
static_assert(kCudaPointerRange == CU_FILE_CUDA_POINTER_RANGE_ERROR);
static_assert(kCudaContextMismatch == CU_FILE_CUDA_CONTEXT_MISMATCH && kInvalidFileType == CU_FILE_INVALID_FILE_TYPE);
static_assert(kInvalidOpenFlag == CU_FILE_INVALID_FILE_OPEN_FLAG && kDirectNotSet == CU_FILE_DIO_NOT_SET);
static_assert(kPermissionDenied == CU_FILE_PERMISSION_DENIED && kInternalError == CU_FILE_INTERNAL_ERROR);
static_assert(kNvfsSetupError == CU_FILE_NVFS_SETUP_ERROR && kIoDisabled == CU_FILE_IO_DISABLED);
static_assert(kPinningFailed == CU_FILE_GPU_MEMORY_PINNING_FAILED);

static_assert(kLustre == CU_FILE_LUSTRE_SUPPORTED && kWeka == CU_FILE_WEKAFS_SUPPORTED);
static_assert(kNfs == CU_FILE_NFS_SUPPORTED && kGpfs == CU_FILE_GPFS_SUPPORTED && kNvme == CU_FILE_NVME_SUPPORTED);
static_assert(kNvmeOverFabrics == CU_FILE_NVMEOF_SUPPORTED && kBeegfs == CU_FILE_BEEGFS_SUPPORTED);
static_assert(kOpaqueDescriptor == CU_FILE_HANDLE_TYPE_OPAQUE_FD);
// Enumerators that headers before these functions lack.
#ifdef CU_FILE_P2P_FLAG_NVFS
static_assert(kNvmePeer == CU_FILE_NVME_P2P_SUPPORTED && kPosixMode == CU_FILE_POSIX_IO_MODE);
static_assert(kPeerToPeer == CU_FILE_P2P_SUPPORTED);
#endif

static_assert(sizeof(Result) == sizeof(CUfileError_t) && offsetof(Result, error) == offsetof(CUfileError_t, err));
static_assert(offsetof(Result, cuda) == offsetof(CUfileError_t, cu_err));

static_assert(sizeof(Properties) == sizeof(CUfileDrvProps_t));
static_assert(offsetof(Properties, major) == offsetof(CUfileDrvProps_t, nvfs.major_version));
static_assert(offsetof(Properties, minor) == offsetof(CUfileDrvProps_t, nvfs.minor_version));
static_assert(offsetof(Properties, poll_threshold) == offsetof(CUfileDrvProps_t, nvfs.poll_thresh_size));
static_assert(offsetof(Properties, max_direct_bytes) == offsetof(CUfileDrvProps_t, nvfs.max_direct_io_size));
static_assert(offsetof(Properties, supported) == offsetof(CUfileDrvProps_t, nvfs.dstatusflags));
static_assert(offsetof(Properties, control) == offsetof(CUfileDrvProps_t, nvfs.dcontrolflags));
static_assert(offsetof(Properties, features) == offsetof(CUfileDrvProps_t, fflags));
static_assert(offsetof(Properties, max_device_cache) == offsetof(CUfileDrvProps_t, max_device_cache_size));
static_assert(offsetof(Properties, per_buffer_cache) == offsetof(CUfileDrvProps_t, per_buffer_cache_size));
static_assert(offsetof(Properties, max_pinned) == offsetof(CUfileDrvProps_t, max_device_pinned_mem_size));
static_assert(offsetof(Properties, max_batch) == offsetof(CUfileDrvProps_t, max_batch_io_size));
static_assert(offsetof(Properties, max_batch_milliseconds) == offsetof(CUfileDrvProps_t, max_batch_io_timeout_msecs));

static_assert(sizeof(Description) == sizeof(CUfileDescr_t));
static_assert(offsetof(Description, type) == offsetof(CUfileDescr_t, type));
static_assert(offsetof(Description, file) == offsetof(CUfileDescr_t, handle));
static_assert(offsetof(Description, operations) == offsetof(CUfileDescr_t, fs_ops));

/// Equal but for the names of structures.
template <class Ours, class Theirs>
struct Same : std::false_type {};
template <class R, class S, class... A, class... B>
struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<(sizeof(R) == sizeof(S)) &&
                         ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...)> {};
static_assert(Same<decltype(Api::driver_open), decltype(&cuFileDriverOpen)>::value);
static_assert(Same<decltype(Api::driver_properties), decltype(&cuFileDriverGetProperties)>::value);
static_assert(Same<decltype(Api::handle_register), decltype(&cuFileHandleRegister)>::value);
static_assert(std::is_same_v<decltype(Api::handle_deregister), decltype(&cuFileHandleDeregister)>);
static_assert(std::is_same_v<decltype(Api::read), decltype(&cuFileRead)>);

TEST(GdsApi, IsThatOfTheHeader) { SUCCEED(); }

}  // namespace
}  // namespace penstock::io::gds

#else
TEST(GdsApi, IsThatOfTheHeader) { GTEST_SKIP() << "cufile.h and cuda.h are not installed"; }
#endif
