#pragma once

#include <span>
#include <string_view>

namespace penstock::device {

/// Device kernels as PTX text, which drivers compile for their processor: src/ops/kernels/*.ptx, embedded by the build.
struct KernelModule {
  std::string_view name;  ///< of the file, "reduce"
  std::string_view ptx;   ///< a terminating zero follows
};

std::span<const KernelModule> kernel_modules() noexcept;
/// The module with the entry point `kernel`, or null.
const KernelModule* module_of_kernel(std::string_view kernel);

}  // namespace penstock::device
