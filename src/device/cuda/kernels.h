#pragma once

// Kernels as the build embeds them: PTX text, which the driver compiles when the first is wanted.

#include <span>
#include <string_view>

namespace penstock::device::cuda {

/// PTX text with its kernels, loaded by the driver when the first of them is wanted. Kernels are launched as
/// "name/entry".
struct KernelModule {
  std::string_view name;
  const char* ptx;
};

/// The table of modules: src/ops/kernels/*.ptx, which the build embeds (cmake/EmbedKernels.cmake).
std::span<const KernelModule> kernel_modules() noexcept;

}  // namespace penstock::device::cuda
