#pragma once

// How work is shared out to threads, which end with it; a loader's workers are threads of its own (data/loader).

#include <cstddef>
#include <functional>

namespace penstock::core {

/// Processors this process may use: the affinity mask and the cgroup's CPU quota, at least 1.
std::size_t usable_cpus() noexcept;

/// Runs body(i) for every i in [0, count) on up to `threads` threads, the caller's among them, and returns when all are
/// done. Indices are taken in order. The first exception stops further indices and is rethrown here.
void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body);

}  // namespace penstock::core
