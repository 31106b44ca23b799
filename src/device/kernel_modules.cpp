#include "device/kernel_modules.h"

#include <algorithm>
#include <string>

namespace penstock::device {

const KernelModule* module_of_kernel(std::string_view kernel) {
  const std::span<const KernelModule> modules = kernel_modules();
  const std::string entry = ".entry " + std::string(kernel) + "(";
  const auto found = std::find_if(modules.begin(), modules.end(), [&entry](const KernelModule& module) {
    return module.ptx.find(entry) != std::string_view::npos;
  });
  return found == modules.end() ? nullptr : &*found;
}

}  // namespace penstock::device
