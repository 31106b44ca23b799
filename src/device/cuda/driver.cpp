// The driver is loaded with dlopen when it is first needed, so that one build of Penstock also runs on machines without
// it. Entry points are asked for by versioned names, because their signatures differ from version to version. A driver
// does not work in a child of fork(), so we remember in which process it was started and refuse to use it in another.

#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "core/environment.h"
#include "core/forks.h"
#include "core/format.h"
#include "core/symbols.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

std::atomic<bool> started{false};
// core::forks() of the process that the driver was started in.
std::atomic<std::uint64_t> started_at{0};

void find_devices(core::Symbols& symbols, Driver& d) {
  symbols.required("cuInit", d.init);
  symbols.required("cuDriverGetVersion", d.driver_version);
  symbols.required("cuGetErrorName", d.error_name);
  symbols.required("cuGetErrorString", d.error_string);
  symbols.required("cuDeviceGet", d.device_get);
  symbols.required("cuDeviceGetCount", d.device_count);
  symbols.required("cuDeviceGetName", d.device_name);
  symbols.required("cuDeviceGetAttribute", d.device_attribute);
  symbols.required("cuDeviceTotalMem_v2", d.device_total_mem);
  symbols.required("cuDevicePrimaryCtxRetain", d.context_retain);
  symbols.required("cuDevicePrimaryCtxRelease_v2", d.context_release);
  symbols.required("cuCtxPushCurrent_v2", d.context_push);
  symbols.required("cuCtxPopCurrent_v2", d.context_pop);
  symbols.required("cuCtxSynchronize", d.context_synchronize);
  symbols.required("cuCtxGetDevice", d.context_device);
}

void find_memory(core::Symbols& symbols, Driver& d) {
  symbols.required("cuMemGetInfo_v2", d.mem_info);
  symbols.required("cuMemAlloc_v2", d.mem_alloc);
  symbols.required("cuMemFree_v2", d.mem_free);
  symbols.required("cuMemHostAlloc", d.host_alloc);
  symbols.required("cuMemFreeHost", d.host_free);
  symbols.required("cuMemHostRegister_v2", d.host_register);
  symbols.required("cuMemHostUnregister", d.host_unregister);
  symbols.required("cuPointerGetAttribute", d.pointer_attribute);
  symbols.required("cuMemcpyAsync", d.copy);
  symbols.required("cuMemcpyPeerAsync", d.copy_between);
  symbols.required("cuMemsetD8Async", d.fill);
  symbols.optional("cuThreadExchangeStreamCaptureMode", d.exchange_capture_mode);
  symbols.optional("cuMemPoolCreate", d.pool_create);
  symbols.optional("cuMemPoolDestroy", d.pool_destroy);
  symbols.optional("cuMemPoolSetAttribute", d.pool_set);
  symbols.optional("cuMemPoolGetAttribute", d.pool_get);
  symbols.optional("cuMemPoolTrimTo", d.pool_trim);
  symbols.optional("cuMemAllocFromPoolAsync", d.pool_alloc);
  symbols.optional("cuMemFreeAsync", d.pool_free);
}

void find_work(core::Symbols& symbols, Driver& d) {
  symbols.required("cuStreamCreateWithPriority", d.stream_create);
  symbols.required("cuStreamDestroy_v2", d.stream_destroy);
  symbols.required("cuStreamSynchronize", d.stream_synchronize);
  symbols.required("cuStreamQuery", d.stream_query);
  symbols.required("cuStreamWaitEvent", d.stream_wait);
  symbols.optional("cuStreamGetCtx", d.stream_context);
  symbols.required("cuEventCreate", d.event_create);
  symbols.required("cuEventDestroy_v2", d.event_destroy);
  symbols.required("cuEventRecord", d.event_record);
  symbols.required("cuEventQuery", d.event_query);
  symbols.required("cuEventSynchronize", d.event_synchronize);
  symbols.required("cuLaunchHostFunc", d.launch_host);
  symbols.required("cuModuleLoadDataEx", d.module_load);
  symbols.required("cuModuleGetFunction", d.module_function);
  symbols.required("cuModuleUnload", d.module_unload);
  symbols.required("cuLaunchKernel", d.launch);
}

struct FoundDriver {
  Driver driver;
  std::string why_not;
};

const char* library_name() {
  const char* const chosen = core::environment("PENSTOCK_LIBCUDA");
  return chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
}

std::string describe(const Driver& d, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (d.error_name(result, &name) != kSuccess || name == nullptr) name = "an unknown error";
  if (d.error_string(result, &text) != kSuccess || text == nullptr) text = "no description";
  return core::format("{} ({}: {})", result, name, text);
}

/// Why the driver refuses to start, as the rest of a sentence; empty when it started.
std::string start(Driver& d) {
  const CUresult result = d.init(0);
  if (result == kStubLibrary) {
    return "the libcuda found is the toolkit's stub, not a driver: take its folder out of LD_LIBRARY_PATH";
  }
  if (result == kNotInitialized) {
    return "the NVIDIA driver does not start in a process that was forked after CUDA was used: start processes by "
           "\"spawn\" or \"forkserver\"";
  }
  if (result != kSuccess) return "the NVIDIA driver does not start: cuInit gives " + describe(d, result);
  d.driver_version(&d.version);
  started_at.store(core::forks());
  started.store(true);
  return {};
}

FoundDriver open_driver() {
  FoundDriver found;
  void* const library = ::dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    found.why_not = core::format("no NVIDIA driver: {}", reason != nullptr ? reason : "libcuda.so.1 cannot be opened");
    return found;
  }
  core::Symbols symbols(library);
  find_devices(symbols, found.driver);
  find_memory(symbols, found.driver);
  find_work(symbols, found.driver);
  if (symbols.missing() != nullptr) {
    found.why_not = core::format("the NVIDIA driver is too old, it has no {}: version 450 or later was expected",
                                 symbols.missing());
    return found;
  }
  found.why_not = start(found.driver);
  return found;
}

const FoundDriver& found_driver() {
  // Never destroyed: buffers may be released after all statics.
  static const FoundDriver& found = *new FoundDriver(open_driver());
  return found;
}

}  // namespace

bool Driver::has_pools() const noexcept {
  return pool_create != nullptr && pool_destroy != nullptr && pool_set != nullptr && pool_get != nullptr &&
         pool_trim != nullptr && pool_alloc != nullptr && pool_free != nullptr;
}

const Driver* find_driver() noexcept {
  const FoundDriver& found = found_driver();
  return found.why_not.empty() ? &found.driver : nullptr;
}

std::string why_no_driver() { return found_driver().why_not; }

const Driver& driver() {
  const FoundDriver& found = found_driver();
  if (!found.why_not.empty()) throw Error(ErrorCode::kNoDevice, found.why_not);
  return found.driver;
}

bool initialised() noexcept { return started.load(std::memory_order_acquire); }

bool forked() noexcept { return initialised() && core::forks() != started_at.load(std::memory_order_relaxed); }

bool usable() noexcept { return !forked() && find_driver() != nullptr; }

void require_not_forked() {
  if (!forked()) return;
  throw Error(ErrorCode::kDeviceFailed,
              "CUDA was used before this process was forked and cannot be used in it: start workers with \"spawn\" or "
              "\"forkserver\", or keep the worker on the cpu");
}

void throw_result(CUresult result, std::string_view call, int device) {
  const ErrorCode code = result == kOutOfMemory                                ? ErrorCode::kOutOfMemory
                         : result == kNoDevice || result == kDeviceUnavailable ? ErrorCode::kNoDevice
                         : result == kInvalidDevice                            ? ErrorCode::kNoDevice
                                                                               : ErrorCode::kDeviceFailed;
  throw Error(code,
              core::format("the CUDA driver's {} for cuda:{} gives {}", call, device, describe(driver(), result)));
}

void check(CUresult result, std::string_view call, int device) {
  if (result != kSuccess) throw_result(result, call, device);
}

}  // namespace penstock::device::cuda
