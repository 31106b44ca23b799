#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/forks.h"

namespace penstock::core {

/// A T for each process in a line of forks, made when it is first asked for and never destroyed: for what has a lock
/// that a thread may hold for long. A forked child does not have that thread, and would wait for the lock for ever, so
/// it gets a T of its own and the parent's is leaked. Thread-safe.
template <class T>
class PerProcess {
 public:
  T& get() {
    Made* found = current_.load();
    while (found == nullptr || found->forks != forks()) {
      auto fresh = std::make_unique<Made>();
      if (current_.compare_exchange_strong(found, fresh.get())) found = fresh.release();
    }
    return found->value;
  }

 private:
  struct Made {
    T value{};
    std::uint64_t forks = core::forks();
  };

  std::atomic<Made*> current_{nullptr};
};

}  // namespace penstock::core
