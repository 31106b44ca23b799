#include "simulator/cublas/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace penstock::simulator {
namespace {

bool find_all(void* library, BlasDriver& out) {
  bool all = true;
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    all = all && function != nullptr;
  };
  find("cuCtxGetCurrent", out.current);
  find("cuStreamGetCtx", out.stream_context);
  find("cuMemGetAddressRange_v2", out.address_range);
  find("cuModuleLoadData", out.module_load);
  find("cuModuleGetFunction", out.module_function);
  find("cuModuleUnload", out.module_unload);
  find("cuCtxSynchronize", out.synchronize);
  find("cuMemAlloc_v2", out.allocate);
  find("cuMemFree_v2", out.free);
  find("cuLaunchKernel", out.launch);
  find("penstockSimReport", out.report);
  find("penstockSimAddKernel", out.add_kernel);
  return all;
}

}  // namespace

const BlasDriver* find_blas_driver() {
  static const BlasDriver* const kDriver = []() -> const BlasDriver* {
    const char* const name = std::getenv("PENSTOCK_LIBCUDA");
    void* const library = name == nullptr ? nullptr : ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    auto* const found = new BlasDriver;
    return library != nullptr && find_all(library, *found) ? found : nullptr;
  }();
  return kDriver;
}

}  // namespace penstock::simulator
