#pragma once

// The device kernels, compiled for the host from the same sources: what a simulated device runs under their names.

#include <array>
#include <cstdint>
#include <string_view>

#include "ops/kernels/arithmetic.cu"
#include "ops/kernels/complex.cu"
#include "ops/kernels/matmul.cu"
#include "ops/kernels/move.cu"
#include "ops/kernels/reduce.cu"

namespace penstock::test {

/// An entry point. `run` does the share of one of `threads` threads; `parameters` is the kernel's only argument, and
/// threads may run in any order or at once.
struct HostKernel {
  std::string_view name;
  void (*run)(const void* parameters, std::uint64_t thread, std::uint64_t threads);
};

template <class Parameters, void (*kKernel)(const Parameters&, std::uint64_t, std::uint64_t)>
void run_host_kernel(const void* parameters, std::uint64_t thread, std::uint64_t threads) {
  kKernel(*static_cast<const Parameters*>(parameters), thread, threads);
}

inline constexpr std::array kHostKernels = {
    HostKernel{"penstock_fill", run_host_kernel<ops::FillKernel, ops::penstock_fill>},
    HostKernel{"penstock_range", run_host_kernel<ops::RangeKernel, ops::penstock_range>},
    HostKernel{"penstock_random", run_host_kernel<ops::RandomKernel, ops::penstock_random>},
    HostKernel{"penstock_copy", run_host_kernel<ops::MoveKernel, ops::penstock_copy>},
    HostKernel{"penstock_convert", run_host_kernel<ops::MoveKernel, ops::penstock_convert>},
    HostKernel{"penstock_select", run_host_kernel<ops::SelectKernel, ops::penstock_select>},
    HostKernel{"penstock_binary", run_host_kernel<ops::BinaryKernel, ops::penstock_binary>},
    HostKernel{"penstock_unary", run_host_kernel<ops::UnaryKernel, ops::penstock_unary>},
    HostKernel{"penstock_sum_lanes", run_host_kernel<ops::ReduceKernel, ops::penstock_sum_lanes>},
    HostKernel{"penstock_join_sums", run_host_kernel<ops::JoinKernel, ops::penstock_join_sums>},
    HostKernel{"penstock_extreme_lanes", run_host_kernel<ops::ReduceKernel, ops::penstock_extreme_lanes>},
    HostKernel{"penstock_join_extremes", run_host_kernel<ops::JoinKernel, ops::penstock_join_extremes>},
    HostKernel{"penstock_matmul", run_host_kernel<ops::MatmulKernel, ops::penstock_matmul>},
    HostKernel{"penstock_complex_binary", run_host_kernel<ops::BinaryKernel, ops::penstock_complex_binary>},
    HostKernel{"penstock_complex_unary", run_host_kernel<ops::UnaryKernel, ops::penstock_complex_unary>},
    HostKernel{"penstock_complex_sum_lanes", run_host_kernel<ops::ReduceKernel, ops::penstock_complex_sum_lanes>},
    HostKernel{"penstock_complex_join_sums", run_host_kernel<ops::JoinKernel, ops::penstock_complex_join_sums>},
    HostKernel{"penstock_complex_matmul", run_host_kernel<ops::MatmulKernel, ops::penstock_complex_matmul>},
};

}  // namespace penstock::test
