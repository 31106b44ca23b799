#include "core/forks.h"

#include <pthread.h>

#include <atomic>

#include "core/refuse.h"

namespace penstock::core {
namespace {

// Changed by a fork handler alone, in a child that has one thread.
std::atomic<std::uint64_t> count{0};

}  // namespace

std::uint64_t forks() noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  static_cast<void>(registered);
  return count.load(std::memory_order_relaxed);
}

void require_own_process(std::uint64_t forks_then) {
  if (forks() == forks_then) return;
  refuse(
      "the loader was made before this process was forked, and its threads stayed in the parent; make a new one in the "
      "child");
}

}  // namespace penstock::core
