#include "device/cuda/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/kernel_parameters.h"

namespace penstock::device::cuda {
namespace {

bool has_kernel(std::string_view kernel) {
  const std::string entry = ".entry " + std::string(kernel) + "(";
  return std::any_of(kernel_modules().begin(), kernel_modules().end(), [&entry](const KernelModule& module) {
    return std::string_view(module.ptx).find(entry) != std::string_view::npos;
  });
}

TEST(CudaKernels, EveryKernelThatHostsKnow) {
  for (const test::KernelParameters& kernel : test::kKernelParameters)
    EXPECT_TRUE(has_kernel(kernel.name)) << kernel.name;
  EXPECT_FALSE(has_kernel("penstock_bin"));
}

/// What every driver from 10.1 on takes, and nothing that NVIDIA's device library would have to bring.
TEST(CudaKernels, LoadOnOldDriversAlone) {
  ASSERT_EQ(kernel_modules().size(), 4U);
  for (const KernelModule& module : kernel_modules()) {
    const std::string_view ptx = module.ptx;
    EXPECT_NE(ptx.find(".version 6.4"), std::string_view::npos) << module.name;
    EXPECT_NE(ptx.find(".target sm_52"), std::string_view::npos) << module.name;
    EXPECT_EQ(ptx.find(".extern"), std::string_view::npos) << module.name;
  }
}

/// A fused operation would round once where the CPU rounds twice.
TEST(CudaKernels, FuseNothing) {
  for (const KernelModule& module : kernel_modules()) {
    for (const std::string_view word : {"fma.", ".approx", "mul.f32", "add.f32", "mul.f64", "add.f64", ".ftz"}) {
      EXPECT_EQ(std::string_view(module.ptx).find(word), std::string_view::npos) << module.name << " " << word;
    }
  }
}

}  // namespace
}  // namespace penstock::device::cuda
