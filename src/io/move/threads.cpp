// Starting a thread costs time, so it has to have enough to do. Reads from the page cache and decoding take a processor
// each, so there are no more threads than processors. Reads from the disk wait most of the time, and a disk is at its
// best with several requests, so their number does not depend on the processors.

#include "io/move/threads.h"

#include <algorithm>
#include <limits>

#include "core/task_pool.h"

namespace penstock::io {
namespace {

constexpr std::size_t kMaxThreads = 16;
// For bytes that come from the disk, however many processors there are.
constexpr std::size_t kColdThreads = 8;
// Calls of a few bytes each that are worth a thread.
constexpr std::uint64_t kCallsPerThread = 256;

}  // namespace

std::size_t threads_for(const Effort& effort, std::size_t asked) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max();
  const auto parts = static_cast<std::size_t>(std::min(effort.parts, kMost));
  if (asked != 0) return std::min(asked, parts);
  if (effort.at_once != 0) return std::min(effort.at_once, parts);
  if (effort.waits_for_disk) return std::min(kColdThreads, parts);
  const std::uint64_t worthwhile = std::max(effort.bytes / effort.bytes_per_thread, effort.calls / kCallsPerThread);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>({worthwhile, parts, kMaxThreads}));
  // Asking for the processors reads files of the system, so it is asked last.
  return wanted <= 1 ? 1 : std::min(wanted, core::usable_cpus());
}

}  // namespace penstock::io
