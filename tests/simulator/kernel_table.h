#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "simulator/simulator.h"

namespace penstock::simulator {

/// Runs the kernel `name`: one that penstockSimAddKernel gave, otherwise one of tests/support/host_kernels.h, which is
/// where a new device kernel gets its line. False when there is none.
bool run_kernel(const std::string& name, const PenstockSimLaunch& launch);

/// Where in its only argument that kernel has pointers to device memory, in bytes; nothing for one that was added, of
/// which every eight bytes that are an address of a device are taken for a pointer.
std::optional<std::span<const std::size_t>> pointers_of(const std::string& name);

}  // namespace penstock::simulator
