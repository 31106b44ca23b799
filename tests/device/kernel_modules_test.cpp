#include "device/kernel_modules.h"

#include <gtest/gtest.h>

#include <string>

#include "support/host_kernels.h"

namespace penstock::device {
namespace {

TEST(KernelModules, HaveEveryKernelThatIsLaunched) {
  for (const test::HostKernel& kernel : test::kHostKernels) {
    EXPECT_NE(module_of_kernel(kernel.name), nullptr) << kernel.name;
  }
  EXPECT_EQ(module_of_kernel("penstock_bin"), nullptr);
}

/// What every driver from 10.1 on takes, and nothing that NVIDIA's device library would have to bring.
TEST(KernelModules, LoadOnOldDriversAlone) {
  ASSERT_EQ(kernel_modules().size(), 4U);
  for (const KernelModule& module : kernel_modules()) {
    EXPECT_NE(module.ptx.find(".version 6.4"), std::string_view::npos) << module.name;
    EXPECT_NE(module.ptx.find(".target sm_52"), std::string_view::npos) << module.name;
    EXPECT_EQ(module.ptx.find(".extern"), std::string_view::npos) << module.name;
    EXPECT_EQ(*(module.ptx.data() + module.ptx.size()), '\0') << module.name;
  }
}

/// A fused operation would round once where the CPU rounds twice.
TEST(KernelModules, FuseNothing) {
  for (const KernelModule& module : kernel_modules()) {
    for (const std::string_view word : {"fma.", ".approx", "mul.f32", "add.f32", "mul.f64", "add.f64", ".ftz"}) {
      EXPECT_EQ(module.ptx.find(word), std::string_view::npos) << module.name << " " << word;
    }
  }
}

}  // namespace
}  // namespace penstock::device
