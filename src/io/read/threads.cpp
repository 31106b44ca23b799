// Starting a thread costs time, so it has to have enough to do. Reads from the page cache and decoding take a processor
// each, so there are no more threads than processors. Reads from a disk or over a network wait most of the time, so
// their number does not depend on the processors: it grows while it pays, within what their requests may hold.

#include "io/read/threads.h"

#include <algorithm>
#include <limits>

#include "core/task_pool.h"
#include "device/host_memory.h"

namespace penstock::io {
namespace {

constexpr std::size_t kMaxThreads = 16;
// Calls of a few bytes each that are worth a thread.
constexpr std::uint64_t kCallsPerThread = 256;
// Requests in flight of one load. Further ones would be threads that the system has to keep, for a rate that no
// machine's memory takes: 256 requests of 1 MiB are 134 GB/s where each takes 2 ms.
constexpr std::size_t kMostAtOnce = 256;
// What all of them may hold, in bytes and of the memory that the process may use.
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;
constexpr std::uint64_t kMemoryShare = 8;

Threads waiting(const Effort& effort, std::size_t parts) {
  Threads out{.first = std::min(effort.costs.at_once, parts), .most = kMostAtOnce, .bound = "latency", .waits = true};
  const auto bind = [&out](std::uint64_t most, std::string_view bound) {
    if (most >= out.most) return;
    out.most = static_cast<std::size_t>(std::max<std::uint64_t>(most, 1));
    out.bound = bound;
  };
  bind(parts, "plan");
  if (effort.costs.is_paced) bind(effort.costs.at_once, "latency");
  if (effort.slots != 0) bind(effort.slots, "memory");
  // Asking for the memory reads files of the system, so it is asked where it may count.
  if (effort.costs.request_memory != 0 && out.most > out.first) {
    bind(std::min(kMostMemory, device::host_memory().total_bytes / kMemoryShare) / effort.costs.request_memory,
         "memory");
  }
  out.first = effort.costs.is_paced ? out.most : std::min(out.first, out.most);
  return out;
}

}  // namespace

std::optional<Depth> Threads::depth() const {
  if (most <= first) return std::nullopt;
  // Fewer than the first number were never better on a disk or for a source of a program, and a cut costs some bytes.
  return Depth({.least = first, .first = first, .most = most});
}

Threads threads_for(const Effort& effort, std::size_t asked) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max();
  const auto parts = static_cast<std::size_t>(std::min(effort.parts, kMost));
  const bool waits = effort.costs.waits();
  if (asked != 0) {
    const std::size_t threads = std::min(asked, parts);
    return {.first = threads, .most = threads, .bound = asked < parts ? "threads" : "plan", .waits = waits};
  }
  if (waits) return waiting(effort, parts);
  const std::uint64_t worthwhile = std::max(effort.bytes / effort.bytes_per_thread, effort.calls / kCallsPerThread);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>({worthwhile, parts, kMaxThreads}));
  // Asking for the processors reads files of the system too, so it is asked last.
  const std::size_t threads = wanted <= 1 ? 1 : std::min(wanted, core::usable_cpus());
  return {.first = threads, .most = threads};
}

}  // namespace penstock::io
