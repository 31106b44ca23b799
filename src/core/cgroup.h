#pragma once

// What a container allows: processors for core::usable_cpus, memory for budgets of loaders and caches.

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::core {

/// What the control groups of this process allow it; unset where they set no limit.
struct CgroupLimits {
  std::optional<double> cpus = {};
  std::optional<std::uint64_t> memory_bytes = {};
};

/// Reads the limits (version 1, 2 or both; the tightest up to the root) of the groups that `membership` lists, below
/// the hierarchy mounted at `mount`. Unreadable files set no limit.
CgroupLimits read_cgroup_limits(const std::string& membership = "/proc/self/cgroup",
                                const std::string& mount = "/sys/fs/cgroup");

}  // namespace penstock::core
