#pragma once

#include <sys/types.h>

#include <cstddef>

/// The part of cuFile's binary interface that Penstock calls: names, numbers and layouts as published in its API
/// reference (docs.nvidia.com/gpudirect-storage/api-reference-guide). tests/io/gds/gds_api_test.cpp compares them with
/// NVIDIA's header where that is installed.
namespace penstock::io::gds {

inline constexpr int kSuccess = 0;
inline constexpr int kErrorBase = 5000;  ///< results beyond it, or below its negative, are cuFile's own

inline constexpr int kDriverNotInitialized = 5001;
inline constexpr int kDriverVersionMismatch = 5004;
inline constexpr int kDriverAlreadyOpen = 5026;
inline constexpr int kPlatformNotSupported = 5007;
inline constexpr int kIoNotSupported = 5008;
inline constexpr int kDeviceNotSupported = 5009;
inline constexpr int kNvfsDriverError = 5010;
inline constexpr int kCudaDriverError = 5011;
inline constexpr int kCudaPointerInvalid = 5012;
inline constexpr int kCudaMemoryTypeInvalid = 5013;
inline constexpr int kCudaPointerRange = 5014;
inline constexpr int kCudaContextMismatch = 5015;
inline constexpr int kInvalidFileType = 5018;
inline constexpr int kInvalidOpenFlag = 5019;
inline constexpr int kDirectNotSet = 5020;
inline constexpr int kPermissionDenied = 5025;
inline constexpr int kInternalError = 5030;
inline constexpr int kNvfsSetupError = 5033;
inline constexpr int kIoDisabled = 5034;
inline constexpr int kPinningFailed = 5036;

/// CUfileError_t
struct Result {
  int error = kSuccess;
  int cuda = 0;  ///< the driver's, with kCudaDriverError
};

// CUfileDriverStatusFlags: bits of Properties::supported
inline constexpr unsigned kLustre = 0;
inline constexpr unsigned kWeka = 1;
inline constexpr unsigned kNfs = 2;
inline constexpr unsigned kGpfs = 3;
inline constexpr unsigned kNvme = 4;
inline constexpr unsigned kNvmeOverFabrics = 5;
inline constexpr unsigned kBeegfs = 9;
inline constexpr unsigned kNvmePeer = 11;

// CUfileDriverControlFlags, a bit of Properties::control; CUfileFeatureFlags, a bit of Properties::features
inline constexpr unsigned kPosixMode = 2;
inline constexpr unsigned kPeerToPeer = 4;

/// CUfileDrvProps_t
struct Properties {
  unsigned major = 0;  ///< of nvidia-fs, the kernel's part; 0.0 without
  unsigned minor = 0;
  std::size_t poll_threshold = 0;
  std::size_t max_direct_bytes = 0;
  unsigned supported = 0;
  unsigned control = 0;
  unsigned features = 0;
  unsigned max_device_cache = 0;
  unsigned per_buffer_cache = 0;
  unsigned max_pinned = 0;
  unsigned max_batch = 0;
  unsigned max_batch_milliseconds = 0;
};

inline constexpr int kOpaqueDescriptor = 1;  ///< CU_FILE_HANDLE_TYPE_OPAQUE_FD

/// CUfileDescr_t
struct Description {
  int type = kOpaqueDescriptor;
  union {
    int fd;
    void* handle;
  } file = {.fd = -1};
  const void* operations = nullptr;  ///< of file systems in user space
};

using Handle = void*;  ///< CUfileHandle_t

/// The entry points.
struct Api {
  Result (*driver_open)() = nullptr;
  Result (*driver_properties)(Properties*) = nullptr;
  Result (*handle_register)(Handle*, Description*) = nullptr;
  void (*handle_deregister)(Handle) = nullptr;
  ssize_t (*read)(Handle, void* base, std::size_t bytes, off_t file_offset, off_t base_offset) = nullptr;
};

}  // namespace penstock::io::gds
