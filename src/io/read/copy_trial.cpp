#include "io/read/copy_trial.h"

#include <algorithm>
#include <span>

namespace penstock::io {
namespace {

// How much faster a mapping must be, since entering its pages holds up the process's other threads. With checksums it
// may even seem slightly slower, since one pass over memory in place of two is usually the faster.
constexpr double kWorthwhile = 1.05;
constexpr double kWorthwhileWithChecksums = 0.97;
// How often the slower way is tried again: seldom where it is half as fast, more often where both are close, so that
// the trials cost a load about a hundredth.
constexpr std::size_t kOneInSoMany = 64;
constexpr std::size_t kOneInSoManyWhenClose = 16;
constexpr double kClose = 1.15;

}  // namespace

bool CopyTrial::map_next() {
  const std::scoped_lock lock(mutex_);
  const auto& [copied, mapped] = ways_;
  ++handed_out_;
  if (copied.done < kKept || mapped.done < kKept) return handed_out_ % 2 == 0;
  const double gain = gain_by_mapping();
  const bool close = gain < kClose && gain > 1 / kClose;
  const bool worthwhile = gain > (checksums_ ? kWorthwhileWithChecksums : kWorthwhile);
  return handed_out_ % (close ? kOneInSoManyWhenClose : kOneInSoMany) == 0 ? !worthwhile : worthwhile;
}

/// Compares the best of the last few ranges, because any one may have been held up by other programs.
double CopyTrial::gain_by_mapping() const {
  const auto best = [](const Way& way) { return *std::ranges::max_element(way.latest); };
  const auto times = std::span(unmapping_.latest).first(std::min(unmapping_.done, kKept));
  const double unmapping = times.empty() ? 0 : *std::ranges::min_element(times);
  return 1 / (1 / best(ways_[1]) + unmapping) / best(ways_[0]);
}

void CopyTrial::done(bool mapped, double bytes_per_second) {
  const std::scoped_lock lock(mutex_);
  ways_[mapped ? 1 : 0].add(bytes_per_second);
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
