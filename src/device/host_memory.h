#pragma once

#include <cstdint>

#include "device/backend.h"

namespace penstock::device {

/// What of the machine's memory this process may use and what of it is free now; a control group's limit counts.
MemoryInfo host_memory();

/// The most that one request can ever be given: physical memory and swap, or the control group's limit.
std::uint64_t largest_host_request();

}  // namespace penstock::device
