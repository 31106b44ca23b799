#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

#include "simulator/cublas.h"

namespace penstock::test {

/// A function that simulator/cublas.h declares, of the cuBLAS in use; null where that is not the simulated one.
template <class Function>
Function* cublas_function(const char* name) {
  const char* const chosen = std::getenv("PENSTOCK_LIBCUBLAS");
  void* const library = chosen == nullptr || *chosen == '\0' ? nullptr : ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  // It stays open, also where nothing has asked for a product yet.
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

inline bool has_simulated_cublas() {
  return cublas_function<PenstockSimCublasProducts>("penstockSimCublasProducts") != nullptr;
}
/// How many products it has started.
inline std::uint64_t cublas_products() {
  return cublas_function<PenstockSimCublasProducts>("penstockSimCublasProducts")();
}
/// Each of its products gives this status; 0 ends it.
inline void fail_cublas(int status) { cublas_function<PenstockSimCublasFail>("penstockSimCublasFail")(status); }
inline void fail_cublas_once(std::uint64_t nth, int status) {
  cublas_function<PenstockSimCublasFailOnce>("penstockSimCublasFailOnce")(nth, status);
}

}  // namespace penstock::test
