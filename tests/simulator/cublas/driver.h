#pragma once

#include <string>

#include "simulator/driver_types.h"
#include "simulator/simulator.h"

namespace penstock::simulator {

/// What the simulated cuBLAS calls of the simulated driver.
struct BlasDriver {
  CUresult (*current)(CUcontext*) = nullptr;
  CUresult (*stream_context)(CUstream, CUcontext*) = nullptr;
  CUresult (*address_range)(CUdeviceptr*, std::size_t*, CUdeviceptr) = nullptr;
  CUresult (*module_load)(CUmodule*, const void*) = nullptr;
  CUresult (*module_function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*module_unload)(CUmodule) = nullptr;
  CUresult (*synchronize)() = nullptr;
  CUresult (*allocate)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*free)(CUdeviceptr) = nullptr;
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                     void**) = nullptr;
  PenstockSimReport* report = nullptr;
  PenstockSimAddKernel* add_kernel = nullptr;
};

/// The driver that PENSTOCK_LIBCUDA names, if the process has loaded it and it is the simulated one; else null.
const BlasDriver* find_blas_driver();

}  // namespace penstock::simulator
