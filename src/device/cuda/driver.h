#pragma once

// NVIDIA's driver, opened at run time (dlopen), so that one build runs with and without it. All of cuda/ calls it
// through `driver()` and turns its results into errors by `check`.

#include <string>
#include <string_view>

#include "device/cuda/driver_api.h"

namespace penstock::device::cuda {

/// The entry points of the driver, as explicit versioned names. Null where optional and missing.
struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*driver_version)(int*) = nullptr;
  CUresult (*error_name)(CUresult, const char**) = nullptr;
  CUresult (*error_string)(CUresult, const char**) = nullptr;

  CUresult (*device_get)(CUdevice*, int) = nullptr;
  CUresult (*device_count)(int*) = nullptr;
  CUresult (*device_name)(char*, int, CUdevice) = nullptr;
  CUresult (*device_attribute)(int*, int, CUdevice) = nullptr;
  CUresult (*device_total_mem)(std::size_t*, CUdevice) = nullptr;
  CUresult (*context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*context_release)(CUdevice) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*context_synchronize)() = nullptr;
  CUresult (*context_device)(CUdevice*) = nullptr;

  CUresult (*mem_info)(std::size_t*, std::size_t*) = nullptr;
  CUresult (*mem_alloc)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*mem_free)(CUdeviceptr) = nullptr;
  CUresult (*host_alloc)(void**, std::size_t, unsigned) = nullptr;
  CUresult (*host_free)(void*) = nullptr;
  CUresult (*host_register)(void*, std::size_t, unsigned) = nullptr;
  CUresult (*host_unregister)(void*) = nullptr;
  CUresult (*pointer_attribute)(void*, int, CUdeviceptr) = nullptr;
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) = nullptr;
  CUresult (*copy_between)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream) = nullptr;
  CUresult (*fill)(CUdeviceptr, unsigned char, std::size_t, CUstream) = nullptr;

  CUresult (*stream_create)(CUstream*, unsigned, int) = nullptr;
  CUresult (*stream_destroy)(CUstream) = nullptr;
  CUresult (*stream_synchronize)(CUstream) = nullptr;
  CUresult (*stream_query)(CUstream) = nullptr;
  CUresult (*stream_wait)(CUstream, CUevent, unsigned) = nullptr;
  CUresult (*event_create)(CUevent*, unsigned) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_query)(CUevent) = nullptr;
  CUresult (*event_synchronize)(CUevent) = nullptr;
  CUresult (*launch_host)(CUstream, CUhostFn, void*) = nullptr;

  CUresult (*module_load)(CUmodule*, const void*, unsigned, int*, void**) = nullptr;
  CUresult (*module_function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*module_unload)(CUmodule) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                     void**) = nullptr;

  // Optional: drivers from 9.2.
  CUresult (*stream_context)(CUstream, CUcontext*) = nullptr;

  // Optional: drivers from 10.1.
  CUresult (*exchange_capture_mode)(int*) = nullptr;

  // Optional: drivers from 11.2.
  CUresult (*pool_create)(CUmemoryPool*, const CUmemPoolProps*) = nullptr;
  CUresult (*pool_destroy)(CUmemoryPool) = nullptr;
  CUresult (*pool_set)(CUmemoryPool, int, void*) = nullptr;
  CUresult (*pool_get)(CUmemoryPool, int, void*) = nullptr;
  CUresult (*pool_trim)(CUmemoryPool, std::size_t) = nullptr;
  CUresult (*pool_alloc)(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream) = nullptr;
  CUresult (*pool_free)(CUdeviceptr, CUstream) = nullptr;

  int version = 0;

  bool has_pools() const noexcept;
};

/// The driver, opened and initialised on the first call and never closed; null without a usable one. Makes no context.
const Driver* find_driver() noexcept;
/// Why find_driver() is null, as the rest of a sentence.
std::string why_no_driver();
/// find_driver(), or kNoDevice.
const Driver& driver();

/// True when the driver was found and initialised already; asks for neither.
bool initialised() noexcept;
/// True in a process that was forked after the driver was initialised, where every call of it fails.
bool forked() noexcept;
/// Throws kDeviceFailed when forked().
void require_not_forked();
/// True while destructors may call the driver.
bool usable() noexcept;

/// Turns a failure of `call` into an Error: kOutOfMemory, kNoDevice or kDeviceFailed with the device it was made for
/// and the driver's words.
void check(CUresult result, std::string_view call, int device);
[[noreturn]] void throw_result(CUresult result, std::string_view call, int device);

}  // namespace penstock::device::cuda
