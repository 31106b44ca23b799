// One table for the process, and one condition that is told whenever something was fetched.

#include "io/remote/cache/claim.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "core/per_process.h"
#include "core/stop_scope.h"
#include "penstock/error.h"

namespace penstock::io::remote {

struct Claim::Fetching {
  std::mutex mutex;
  std::condition_variable ended;
  std::set<ClaimedBlock> blocks;
};

/// That of this process. In a forked child the parent's is left alone: its threads do not exist there.
Claim::Fetching& Claim::get() {
  static constinit core::PerProcess<Fetching> one;
  return one.get();
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
