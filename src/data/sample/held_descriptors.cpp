#include "data/sample/held_descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace penstock::data {
namespace {

std::atomic<std::size_t> held = 0;

}  // namespace

HeldDescriptors::HeldDescriptors(std::size_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto most = static_cast<std::size_t>(limit.rlim_cur / 4);
  const std::size_t before = held.fetch_add(wanted);
  count_ = std::min(wanted, most - std::min(before, most));
  held -= wanted - count_;
}

HeldDescriptors::~HeldDescriptors() { held -= count_; }

}  // namespace penstock::data
