// Start, versions, devices and errors.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "simulator/call.h"

namespace penstock::simulator {
namespace {

// As the driver reads CUDA_VISIBLE_DEVICES: indices up to the first that is none; not set, all.
std::vector<int> visible_devices(int devices) {
  std::vector<int> visible;
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int device = 0; text == nullptr && device < devices; ++device) visible.push_back(device);
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    int index = -1;
    std::from_chars(rest.data(), rest.data() + end, index);
    if (index < 0 || index >= devices) break;
    if (std::find(visible.begin(), visible.end(), index) != visible.end()) return {};
    visible.push_back(index);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return visible;
}

int attribute_value(int attribute, CUdevice device) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
    case kMaxBlockX:
      return 1024;
    case kMaxGridX:
      return 2147483647;
    case kMaxSharedPerBlock:
      return 49152;
    case kWarpSize:
      return 32;
    case kMultiprocessors:
      return 4;
    case kMajor:
      return 9;
    case kPciBus:
      return device + 1;
    case kAsyncEngines:
      return 2;
    case kCanMapHost:
    case kUnifiedAddressing:
    case kMemoryPools:
      return 1;
    case kHostNuma:
      return state().settings.numa_node;
    default:
      return 0;
  }
}

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {kDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {kJitDisabled, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kHostRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {kHostNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult describe(CUresult code, const char** out, const char* ErrorText::*member) {
  if (out == nullptr) return kInvalidValue;
  const auto* const found =
      std::find_if(std::begin(kErrors), std::end(kErrors), [&](auto& e) { return e.code == code; });
  *out = found == std::end(kErrors) ? nullptr : found->*member;
  return *out == nullptr ? kInvalidValue : kSuccess;
}

}  // namespace

PENSTOCK_SIM_API CUresult cuInit(unsigned flags) {
  const Call call("cuInit", Need::kNothing);
  if (call.refused()) return call.result();
  if (flags != 0) return kInvalidValue;
  const Lock lock;
  State& s = state();
  if (s.settings.stub) return kStubLibrary;
  if (!s.initialised.load()) s.visible = visible_devices(s.settings.devices);
  if (s.visible.empty()) return kNoDevice;
  s.initialised.store(true);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDriverGetVersion(int* version) {
  const Call call("cuDriverGetVersion", Need::kNothing);
  if (call.refused()) return call.result();
  if (version == nullptr) return kInvalidValue;
  const Lock lock;
  *version = state().settings.version;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuGetErrorName(CUresult code, const char** name) {
  return describe(code, name, &ErrorText::name);
}

PENSTOCK_SIM_API CUresult cuGetErrorString(CUresult code, const char** text) {
  return describe(code, text, &ErrorText::text);
}

PENSTOCK_SIM_API CUresult cuDeviceGetCount(int* count) {
  const Call call("cuDeviceGetCount", Need::kStart);
  if (call.refused()) return call.result();
  if (count == nullptr) return kInvalidValue;
  const Lock lock;
  *count = static_cast<int>(state().visible.size());
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Call call("cuDeviceGet", Need::kStart);
  if (call.refused()) return call.result();
  if (device == nullptr) return kInvalidValue;
  const Lock lock;
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  const Call call("cuDeviceGetName", Need::kStart);
  if (call.refused()) return call.result();
  if (name == nullptr || length <= 0) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(length), "Simulated CUDA device");
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  const Call call("cuDeviceGetAttribute", Need::kStart);
  if (call.refused()) return call.result();
  if (value == nullptr || attribute <= 0) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  *value = attribute_value(attribute, device);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  const Call call("cuDeviceTotalMem_v2", Need::kStart);
  if (call.refused()) return call.result();
  if (bytes == nullptr) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  *bytes = state().settings.memory;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const Call call("cuDeviceGetUuid_v2", Need::kStart);
  if (call.refused()) return call.result();
  if (uuid == nullptr) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  std::memset(uuid->bytes, 0x51, sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<unsigned char>(state().visible[static_cast<std::size_t>(device)]);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  const Call call("cuDeviceGetPCIBusId", Need::kStart);
  if (call.refused()) return call.result();
  if (text == nullptr || length < 13) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
  return kSuccess;
}

}  // namespace penstock::simulator
