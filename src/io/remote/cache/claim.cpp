// One table for the process, and one condition that is told whenever something was fetched.

#include "io/remote/cache/claim.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "core/forks.h"
#include "core/stop_scope.h"
#include "penstock/error.h"

namespace penstock::io::remote {

struct Claim::Fetching {
  const std::uint64_t forks = core::forks();
  std::mutex mutex;
  std::condition_variable ended;
  std::set<ClaimedBlock> blocks;
};

/// That of this process. In a forked child the parent's is left alone: its threads do not exist there.
Claim::Fetching& Claim::get() {
  static std::atomic<Fetching*> current{nullptr};
  Fetching* found = current.load();
  while (found == nullptr || found->forks != core::forks()) {
    auto fresh = std::make_unique<Fetching>();
    if (current.compare_exchange_strong(found, fresh.get())) found = fresh.release();
  }
  return *found;
}

Claim::Claim(std::vector<ClaimedBlock> wanted) : fetching_(get()), wanted_(std::move(wanted)) {
  const std::scoped_lock lock(fetching_.mutex);
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (fetching_.blocks.insert(wanted_[i]).second) ours_.push_back(i);
  }
}

void Claim::end() {
  const std::scoped_lock lock(fetching_.mutex);
  for (const std::size_t i : ours_) fetching_.blocks.erase(wanted_[i]);
  ours_.clear();
  fetching_.ended.notify_all();
}

void Claim::wait_for_others() const {
  std::unique_lock lock(fetching_.mutex);
  for (const ClaimedBlock& block : wanted_) {
    while (fetching_.blocks.contains(block)) {
      fetching_.ended.wait_for(lock, std::chrono::milliseconds(50));
      if (core::StopScope::stop_requested()) {
        throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
      }
    }
  }
}

}  // namespace penstock::io::remote
