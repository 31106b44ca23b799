#pragma once

// How much memory there is, for budgets, for errors that say what to do, and for `penstock doctor`.

#include <cstdint>
#include <optional>

#include "device/backend.h"

namespace penstock::device {

/// What of the machine's memory this process may use and what of it is free now; a control group's limit counts.
MemoryInfo host_memory();

/// The most that one request can ever be given: physical memory and swap, or the control group's limit.
std::uint64_t largest_host_request();

/// The addresses that this process may use, whatever memory there is; nothing without a limit (RLIMIT_AS).
std::optional<MemoryInfo> address_space();

}  // namespace penstock::device
