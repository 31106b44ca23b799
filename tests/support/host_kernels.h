#pragma once

// The device kernels, compiled for the host from the same sources. Simulated devices run the kernels' PTX text
// (tests/simulator/ptx); these are for what only the sources can show: undefined behaviour, by sanitizers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/kernels/arithmetic.cu"
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

template <class Parameters, void (*kKernel)(const Parameters&, std::uint64_t, std::uint64_t)>
constexpr HostKernel host_kernel(std::string_view name) {
  return {name, run_host_kernel<Parameters, kKernel>};
}

inline constexpr std::array kHostKernels = {
    host_kernel<ops::FillKernel, ops::penstock_fill>("penstock_fill"),
    host_kernel<ops::RangeKernel, ops::penstock_range>("penstock_range"),
    host_kernel<ops::RandomKernel, ops::penstock_random>("penstock_random"),
    host_kernel<ops::MoveKernel, ops::penstock_copy>("penstock_copy"),
    host_kernel<ops::MoveKernel, ops::penstock_convert>("penstock_convert"),
    host_kernel<ops::SelectKernel, ops::penstock_select>("penstock_select"),
    host_kernel<ops::BinaryKernel, ops::penstock_binary>("penstock_binary"),
    host_kernel<ops::UnaryKernel, ops::penstock_unary>("penstock_unary"),
    host_kernel<ops::ReduceKernel, ops::penstock_sum_lanes>("penstock_sum_lanes"),
    host_kernel<ops::JoinKernel, ops::penstock_join_sums>("penstock_join_sums"),
    host_kernel<ops::ReduceKernel, ops::penstock_extreme_lanes>("penstock_extreme_lanes"),
    host_kernel<ops::JoinKernel, ops::penstock_join_extremes>("penstock_join_extremes"),
    host_kernel<ops::MatmulKernel, ops::penstock_matmul>("penstock_matmul"),
};

}  // namespace penstock::test
