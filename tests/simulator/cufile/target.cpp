// What the simulated cuFile asks of the simulated driver.

#include <dlfcn.h>

#include <cstdlib>

#include "simulator/cufile/state.h"
#include "simulator/driver_types.h"

namespace penstock::simulator::cufile {
namespace {

void* driver() {
  static void* const library = [] {
    const char* const name = std::getenv("PENSTOCK_LIBCUDA");
    return ::dlopen(name != nullptr && *name != '\0' ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

template <class... Parameters>
int call(const char* name, std::type_identity_t<Parameters>... arguments) {
  void* const entry = driver() == nullptr ? nullptr : ::dlsym(driver(), name);
  if (entry == nullptr) return kNotFound;
  return reinterpret_cast<CUresult (*)(Parameters...)>(entry)(arguments...);
}

template <class T>
int ask(std::uint64_t address, int attribute, T& value) {
  return call<void*, int, CUdeviceptr>("cuPointerGetAttribute", &value, attribute, address);
}

}  // namespace

int check_target(std::uint64_t address, std::size_t bytes, bool takes_pools, std::string& text) {
  CUcontext context = nullptr;
  CUdevice current = -1;
  if (call<CUcontext*>("cuCtxGetCurrent", &context) != simulator::kSuccess || context == nullptr) {
    text = "no context is current";
    return -kInvalidContext;
  }
  unsigned type = 0;
  int ordinal = -1;
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CUmemoryPool pool = nullptr;
  if (ask(address, kPointerMemoryType, type) != simulator::kSuccess || type != kMemoryDevice) {
    text = "the target is no memory of a device";
    return -kCudaPointerInvalid;
  }
  ask(address, kPointerOrdinal, ordinal);
  ask(address, kPointerRangeStart, start);
  ask(address, kPointerRangeSize, size);
  ask(address, kPointerPool, pool);
  if (call<CUdevice*>("cuCtxGetDevice", &current) != simulator::kSuccess || current != ordinal) {
    text = "the target's device is not that of the current context";
    return -kCudaContextMismatch;
  }
  if (bytes > size - (address - start)) {
    text = std::to_string(bytes) + " bytes, where " + std::to_string(size - (address - start)) + " are";
    return -kCudaPointerRange;
  }
  return pool != nullptr && !takes_pools ? -kCudaMemoryTypeInvalid : 0;
}

int copy_to_device(std::uint64_t address, const std::byte* from, std::size_t bytes) {
  // Nothing orders it with other streams: whoever reads by cuFile has seen to that.
  CUstream stream = nullptr;
  int result = call<CUstream*, unsigned, int>("cuStreamCreateWithPriority", &stream, kStreamNonBlocking, 0);
  if (result != simulator::kSuccess) return result;
  result = call<CUdeviceptr, const void*, std::size_t, CUstream>("cuMemcpyHtoDAsync_v2", address, from, bytes, stream);
  if (result == simulator::kSuccess) result = call<CUstream>("cuStreamSynchronize", stream);
  call<CUstream>("cuStreamDestroy_v2", stream);
  return result;
}

}  // namespace penstock::simulator::cufile
