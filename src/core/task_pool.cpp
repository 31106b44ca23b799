// How many processors a process may use is decided by its affinity mask and by the limits of its cgroup; both are read,
// because in a container the mask alone shows all processors of the machine. parallel_for uses the caller's thread too,
// so it makes progress even when the system gives no further threads.

#include "core/task_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cgroup.h"

namespace penstock::core {
namespace {

std::size_t affinity_cpus() noexcept {
  // Machines with more processors than cpu_set_t holds answer EINVAL until the mask is large enough.
  for (std::size_t cpus = CPU_SETSIZE; cpus <= std::size_t{1} << 20; cpus *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus), [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      return static_cast<std::size_t>(std::max(CPU_COUNT_S(bytes, set.get()), 1));
    }
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

/// State that all threads of one parallel_for share.
struct Progress {
  std::size_t count;
  const std::function<void(std::size_t)>& body;
  std::atomic<std::size_t> next{0};
  std::mutex mutex{};
  std::exception_ptr failure{};

  void work() noexcept {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        next = count;
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }
};

}  // namespace

std::size_t usable_cpus() noexcept {
  const std::size_t cpus = affinity_cpus();
  try {
    const CgroupLimits limits = read_cgroup_limits();
    if (!limits.cpus) return cpus;
    return std::min(cpus, static_cast<std::size_t>(std::max(1.0, std::ceil(std::min(*limits.cpus, 1e6)))));
  } catch (...) {
    return cpus;
  }
}

void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body) {
  Progress progress{count, body};
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(threads, count); ++i) helpers.emplace_back([&] { progress.work(); });
    } catch (const std::exception&) {
      // Fewer helpers do the same work.
    }
    progress.work();
  }
  if (progress.failure) std::rethrow_exception(progress.failure);
}

}  // namespace penstock::core
