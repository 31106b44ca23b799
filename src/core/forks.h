#pragma once

#include <cstdint>

namespace penstock::core {

/// How many forks lie between this process and the first of its line that asked: what was kept with another number was
/// made in another process, and its threads are there. No system call after the first time. Thread-safe.
std::uint64_t forks() noexcept;

/// kInvalidArgument in another process than the one where forks() gave this number: a loader's threads stayed there.
void require_own_process(std::uint64_t forks_then);

}  // namespace penstock::core
