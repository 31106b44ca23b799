#pragma once

#include <cstdint>

// What libpenstock_simulated_cublas.so offers besides cuBLAS's interface: tests find these functions by dlsym in the
// library that PENSTOCK_LIBCUBLAS names. It computes on the simulated driver that PENSTOCK_LIBCUDA names, and reports
// what breaks cuBLAS's rules to it. Any thread may call them at any time.
//
// Environment, read by the first call:
//   PENSTOCK_SIM_CUBLAS          "not_initialized": no handle can be made; "refuse": products are not supported;
//                                a number: each product gives that status

extern "C" {

/// Each product gives `status` from now on and computes nothing; 0 ends it.
using PenstockSimCublasFail = void(int status);
/// The `nth` product from now (1 the next) gives `status`.
using PenstockSimCublasFailOnce = void(std::uint64_t nth, int status);
/// How many products were started, each of the matrices of a batch with all others as one.
using PenstockSimCublasProducts = std::uint64_t();
/// How many handles are alive.
using PenstockSimCublasHandles = std::uint64_t();
}
