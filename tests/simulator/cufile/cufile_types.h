#pragma once

#include <sys/types.h>

#include <cstddef>

// cuFile's binary interface as the simulator sees it, declared without looking at production's declarations, so that a
// mistake there shows. Names and numbers: docs.nvidia.com/gpudirect-storage/api-reference-guide.

extern "C" {

struct CUfileError_t {
  int err;
  int cu_err;
};

struct CUfileDrvProps_t {
  struct {
    unsigned int major_version;
    unsigned int minor_version;
    std::size_t poll_thresh_size;
    std::size_t max_direct_io_size;
    unsigned int dstatusflags;
    unsigned int dcontrolflags;
  } nvfs;
  unsigned int fflags;
  unsigned int max_device_cache_size;
  unsigned int per_buffer_cache_size;
  unsigned int max_device_pinned_mem_size;
  unsigned int max_batch_io_size;
  unsigned int max_batch_io_timeout_msecs;
};

struct CUfileDescr_t {
  int type;
  union {
    int fd;
    void* handle;
  } handle;
  const void* fs_ops;
};

using CUfileHandle_t = void*;
}

namespace penstock::simulator::cufile {

static_assert(sizeof(CUfileDrvProps_t) == 56 && sizeof(CUfileDescr_t) == 24 && sizeof(CUfileError_t) == 8);

enum Error : int {
  kSuccess = 0,
  kDriverNotInitialized = 5001,
  kDriverAlreadyOpen = 5026,
  kIoNotSupported = 5008,
  kCudaPointerInvalid = 5012,
  kCudaMemoryTypeInvalid = 5013,
  kCudaPointerRange = 5014,
  kCudaContextMismatch = 5015,
  kInvalidFileType = 5018,
  kInvalidOpenFlag = 5019,
  kInvalidValue = 5022,
  kHandleNotRegistered = 5027,
  kHandleRegistered = 5028,
  kInvalidContext = 5047,
};

inline constexpr int kOpaqueDescriptor = 1;
inline constexpr unsigned kNvme = 1U << 4;
inline constexpr unsigned kAllowCompat = 1U << 1;
inline constexpr unsigned kPeerToPeer = 1U << 4;

}  // namespace penstock::simulator::cufile
