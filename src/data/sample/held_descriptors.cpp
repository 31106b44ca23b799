#include "data/sample/held_descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace penstock::data {
namespace {

std::atomic<std::size_t> held = 0;

}  // namespace

DescriptorLimit::DescriptorLimit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) most_ = static_cast<std::size_t>(limit.rlim_cur / 4);
}

HeldDescriptors::HeldDescriptors(std::size_t wanted, const DescriptorLimit& limit) noexcept {
  const std::size_t before = held.fetch_add(wanted);
  count_ = std::min(wanted, limit.most() - std::min(before, limit.most()));
  held -= wanted - count_;
}

HeldDescriptors::~HeldDescriptors() { held -= count_; }

}  // namespace penstock::data
