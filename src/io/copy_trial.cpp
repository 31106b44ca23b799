#include "io/copy_trial.h"

#include <algorithm>

namespace penstock::io {
namespace {

// How much faster a mapping must be. It costs pages that are mapped, and unmapped for all threads; but speeds vary, and
// one pass over memory in place of two is as a rule the faster.
constexpr double kWorthwhile = 1.05;
constexpr double kWorthwhileWithChecksums = 0.9;
// A way that is half as fast may cost a load a hundredth.
constexpr std::size_t kOneInSoMany = 64;

}  // namespace

bool CopyTrial::map_next() {
  const std::scoped_lock lock(mutex_);
  const auto& [copied, mapped] = ways_;
  ++handed_out_;
  if (copied.done < kKept || mapped.done < kKept) return handed_out_ % 2 == 0;
  // The best of some: a range may be held up by whatever else the machine does.
  const double worthwhile = checksums_ ? kWorthwhileWithChecksums : kWorthwhile;
  const bool faster = *std::ranges::max_element(mapped.latest) > worthwhile * *std::ranges::max_element(copied.latest);
  return handed_out_ % kOneInSoMany == 0 ? !faster : faster;
}

void CopyTrial::done(bool mapped, double bytes_per_second) {
  const std::scoped_lock lock(mutex_);
  Way& way = ways_[mapped ? 1 : 0];
  way.latest[way.done++ % kKept] = bytes_per_second;
}

}  // namespace penstock::io
