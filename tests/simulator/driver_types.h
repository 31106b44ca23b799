#pragma once

#include <cstddef>
#include <cstdint>

// The driver's binary interface as the simulator and its tests see it, declared without looking at production's
// declarations, so that a mistake there shows. Names and numbers: docs.nvidia.com/cuda/cuda-driver-api.

extern "C" {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct SimContextHandle*;
using CUstream = struct SimStreamHandle*;
using CUevent = struct SimEventHandle*;
using CUmodule = struct SimModuleHandle*;
using CUfunction = struct SimFunctionHandle*;
using CUmemoryPool = struct SimPoolHandle*;
using CUhostFn = void (*)(void* data);

struct CUuuid {
  unsigned char bytes[16];
};

struct CUmemLocation {
  int type;
  int id;
};

struct CUmemPoolProps {
  int allocation_type;
  int handle_types;
  CUmemLocation location;
  void* security_attributes;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
}

namespace penstock::simulator {

static_assert(sizeof(CUmemPoolProps) == 88);

enum Result : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kJitDisabled = 223,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kHostRegistered = 712,
  kHostNotRegistered = 713,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kUnknown = 999,
};

// CUstreamCaptureMode
inline constexpr int kCaptureRelaxed = 2;

// CUdevice_attribute
inline constexpr int kMaxThreadsPerBlock = 1;
inline constexpr int kMaxBlockX = 2;
inline constexpr int kMaxGridX = 5;
inline constexpr int kMaxSharedPerBlock = 8;
inline constexpr int kWarpSize = 10;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kIntegrated = 18;
inline constexpr int kCanMapHost = 19;
inline constexpr int kPciBus = 33;
inline constexpr int kPciDevice = 34;
inline constexpr int kAsyncEngines = 40;
inline constexpr int kUnifiedAddressing = 41;
inline constexpr int kPciDomain = 50;
inline constexpr int kMajor = 75;
inline constexpr int kMinor = 76;
inline constexpr int kMemoryPools = 115;
inline constexpr int kHostNuma = 134;

// CUpointer_attribute, CUmemorytype
inline constexpr int kPointerContext = 1;
inline constexpr int kPointerMemoryType = 2;
inline constexpr int kPointerDevice = 3;
inline constexpr int kPointerHost = 4;
inline constexpr int kPointerManaged = 8;
inline constexpr int kPointerOrdinal = 9;
inline constexpr int kPointerRangeStart = 11;
inline constexpr int kPointerRangeSize = 12;
inline constexpr int kPointerPool = 17;
inline constexpr unsigned kMemoryHost = 1;
inline constexpr unsigned kMemoryDevice = 2;

// CUstream_flags, CUevent_flags, CU_MEMHOSTALLOC_*
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventInterprocess = 4;
inline constexpr unsigned kHostFlags = 7;
inline constexpr unsigned kRegisterFlags = 15;

// CUjit_option, CUmemPool_attribute
inline constexpr int kJitErrorLog = 5;
inline constexpr int kJitErrorLogBytes = 6;
inline constexpr int kPoolReleaseThreshold = 4;
inline constexpr int kPoolReserved = 5;
inline constexpr int kPoolReservedHigh = 6;
inline constexpr int kPoolUsed = 7;
inline constexpr int kPoolUsedHigh = 8;

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: handles that are numbers.
inline constexpr std::uintptr_t kLegacyStream = 1;
inline constexpr std::uintptr_t kPerThreadStream = 2;

}  // namespace penstock::simulator

/// Before each entry point of the library.
#define PENSTOCK_SIM_API extern "C" __attribute__((visibility("default")))
