#pragma once

// Processor time, which tells a loader that waits from one that computes.

#include <optional>

namespace penstock::core {

/// Seconds that the calling thread has run on a processor.
double thread_seconds() noexcept;
/// Seconds that all threads of this process have run.
double process_seconds() noexcept;
/// Seconds that the calling thread was ready to run and had no processor: others had them, or a control group's share
/// was used up. Nothing where the kernel does not count them (/proc/thread-self/schedstat). About 2 us.
std::optional<double> thread_stalled_seconds() noexcept;

}  // namespace penstock::core
