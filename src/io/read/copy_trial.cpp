// Copying cached bytes out of a mapping saves a pass over memory, but mapping and unmapping pages costs time and holds
// up other threads. Which is faster depends on the machine, so it is measured: both routes take turns at first, then
// the faster one is taken, and the other is tried again once in a while.

#include "io/read/copy_trial.h"

#include <algorithm>
#include <span>

namespace penstock::io {
namespace {

// How much faster a mapping must be than the system's copy. Without checksums it must gain something, because faults on
// its pages hold up the process's other threads. With checksums it may measure slightly slower: it computes them in the
// same pass over memory, which usually pays.
constexpr double kWorthwhile = 1.05;
constexpr double kWorthwhileWithChecksums = 0.97;
// How often the slower route is tried again: more often when both are close. The trials cost a load about 1 %.
constexpr std::size_t kOneInSoMany = 64;
constexpr std::size_t kOneInSoManyWhenClose = 16;
constexpr double kClose = 1.15;

}  // namespace

bool CopyTrial::map_next() {
  const std::scoped_lock lock(mutex_);
  const auto& [copied, mapped] = routes_;
  ++handed_out_;
  if (copied.done < kKept || mapped.done < kKept) return handed_out_ % 2 == 0;
  const double gain = gain_by_mapping();
  const bool close = gain < kClose && gain > 1 / kClose;
  const bool worthwhile = gain > (checksums_ ? kWorthwhileWithChecksums : kWorthwhile);
  return handed_out_ % (close ? kOneInSoManyWhenClose : kOneInSoMany) == 0 ? !worthwhile : worthwhile;
}

/// Compares the best of the last few ranges, because any one may have been held up by other programs.
double CopyTrial::gain_by_mapping() const {
  const auto best = [](const Route& route) { return *std::ranges::max_element(route.latest); };
  const auto times = std::span(unmapping_.latest).first(std::min(unmapping_.done, kKept));
  const double unmapping = times.empty() ? 0 : *std::ranges::min_element(times);
  return 1 / (1 / best(routes_[1]) + unmapping) / best(routes_[0]);
}

void CopyTrial::done(bool mapped, double bytes_per_second) {
  const std::scoped_lock lock(mutex_);
  routes_[mapped ? 1 : 0].add(bytes_per_second);
}

void CopyTrial::unmapped(std::uint64_t bytes, double seconds) {
  const std::scoped_lock lock(mutex_);
  unmapping_.add(seconds / static_cast<double>(bytes));
}

bool CopyTrial::knows_unmapping() {
  const std::scoped_lock lock(mutex_);
  return unmapping_.done > 0;
}

}  // namespace penstock::io
