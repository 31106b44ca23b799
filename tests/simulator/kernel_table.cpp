#include "simulator/kernel_table.h"

#include <algorithm>

#include "simulator/call.h"
#include "simulator/state.h"
#include "support/kernel_parameters.h"

namespace penstock::simulator {
namespace {

PenstockSimKernel* added_kernel(const std::string& name) {
  const Lock lock;
  return find(state().kernels, name);
}

ptx::Dimensions dimensions(const unsigned (&size)[3]) { return {size[0], size[1], size[2]}; }

}  // namespace

Ran run_kernel(const std::string& name, const PenstockSimLaunch& launch, ptx::Order order,
               std::span<const ptx::Range> memory) {
  if (PenstockSimKernel* const added = added_kernel(name)) {
    added(&launch);
    return Ran::kWell;
  }
  const ptx::Kernel* const kernel = ptx::find_kernel(name);
  if (kernel == nullptr || launch.count != 1) return Ran::kUnknown;
  const std::span parameters(static_cast<const std::byte*>(launch.arguments[0]), kernel->parameter_bytes);
  try {
    ptx::run(*kernel, {dimensions(launch.grid), dimensions(launch.block), order}, parameters, memory);
    return Ran::kWell;
  } catch (const ptx::Fault& fault) {
    const Lock lock;
    violation(std::string(kernel->file) + ", " + fault.what() + " (" + name + ")");
    return Ran::kFault;
  }
}

std::optional<std::span<const std::size_t>> pointers_of(const std::string& name) {
  const test::KernelParameters* const found = added_kernel(name) == nullptr ? test::find_parameters(name) : nullptr;
  return found != nullptr ? std::optional(found->pointers) : std::nullopt;
}

bool is_translated(const std::string& name, std::string_view text) {
  if (added_kernel(name) != nullptr || ptx::find_kernel(name) == nullptr) return true;
  return std::ranges::any_of(ptx::translations(), [hash = ptx::hash_of(text)](const ptx::Translation* translation) {
    return translation->hash == hash;
  });
}

}  // namespace penstock::simulator
