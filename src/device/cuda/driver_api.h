#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the CUDA driver's binary interface that Penstock calls: names, numbers and layouts as published in its
/// reference manual (docs.nvidia.com/cuda/cuda-driver-api). tests/device/cuda/driver_api_test.cpp compares them with
/// NVIDIA's header where that is installed.
namespace penstock::device::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUhostFn = void (*)(void*);

inline constexpr CUresult kSuccess = 0;
inline constexpr CUresult kInvalidValue = 1;
inline constexpr CUresult kOutOfMemory = 2;
inline constexpr CUresult kNotInitialized = 3;
inline constexpr CUresult kDeinitialized = 4;
inline constexpr CUresult kStubLibrary = 34;
inline constexpr CUresult kDeviceUnavailable = 46;
inline constexpr CUresult kNoDevice = 100;
inline constexpr CUresult kInvalidDevice = 101;
inline constexpr CUresult kInvalidImage = 200;
inline constexpr CUresult kNoBinaryForGpu = 209;
inline constexpr CUresult kInvalidPtx = 218;
inline constexpr CUresult kJitCompilerNotFound = 221;
inline constexpr CUresult kUnsupportedPtx = 222;
inline constexpr CUresult kJitDisabled = 223;
inline constexpr CUresult kOperatingSystem = 304;
inline constexpr CUresult kInvalidHandle = 400;
inline constexpr CUresult kNotFound = 500;
inline constexpr CUresult kNotReady = 600;
inline constexpr CUresult kHostRegistered = 712;
inline constexpr CUresult kHostNotRegistered = 713;
inline constexpr CUresult kNotPermitted = 800;
inline constexpr CUresult kNotSupported = 801;

// CUdevice_attribute
inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeIntegrated = 18;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeMemoryPools = 115;
inline constexpr int kAttributeHostNuma = 134;

// CUstreamCaptureMode
inline constexpr int kCaptureRelaxed = 2;

// CUstream_flags, CUevent_flags, flags of cuMemHostAlloc and cuMemHostRegister
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;

// CUpointer_attribute
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerDeviceOrdinal = 9;
inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

// CUjit_option
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBytes = 6;

// CUmemPool_attribute
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReservedNow = 5;

/// CUmemLocation, CUmemPoolProps: memory of one device for this process.
struct CUmemLocation {
  int type = 1;  ///< CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};
struct CUmemPoolProps {
  int allocation = 1;  ///< CU_MEM_ALLOCATION_TYPE_PINNED, which is what device memory is
  int handles = 0;     ///< CU_MEM_HANDLE_TYPE_NONE
  CUmemLocation location;
  void* security = nullptr;
  std::size_t max_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

}  // namespace penstock::device::cuda
