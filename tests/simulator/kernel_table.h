#pragma once

#include <string>

#include "simulator/simulator.h"

namespace penstock::simulator {

/// Runs the kernel `name`: one that penstockSimAddKernel gave, otherwise one of tests/support/host_kernels.h, which is
/// where a new device kernel gets its line. False when there is none.
bool run_kernel(const std::string& name, const PenstockSimLaunch& launch);

}  // namespace penstock::simulator
