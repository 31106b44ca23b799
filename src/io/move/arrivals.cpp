// Counts down. Each buffer counts the targets that have not arrived, and each step counts its buffers that are not
// full. A range that is done lowers the counts of its buffers; a buffer that reaches zero lowers those of the steps
// that wait for it.

#include "io/move/arrivals.h"

#include <numeric>

namespace penstock::io {

Arrivals::Arrivals(const Plan& plan, std::span<const Step> steps, std::size_t buffers) : plan_(plan) {
  if (steps.empty()) return;
  targets_left_.assign(buffers, 0);
  for (const Target& target : plan.targets) {
    if (target.buffer != kDiscard) ++targets_left_[target.buffer];
  }
  buffers_left_.assign(steps.size(), 0);
  first_waiting_.assign(buffers + 1, 0);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (const std::uint32_t buffer : steps[s].buffers) {
      if (targets_left_[buffer] == 0) continue;
      ++buffers_left_[s];
      ++first_waiting_[buffer + 1];
    }
  }
  std::partial_sum(first_waiting_.begin(), first_waiting_.end(), first_waiting_.begin());
  waiting_.resize(first_waiting_.back());
  std::vector<std::size_t> next(first_waiting_.begin(), first_waiting_.end() - 1);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (const std::uint32_t buffer : steps[s].buffers) {
      if (targets_left_[buffer] != 0) waiting_[next[buffer]++] = s;
    }
  }
}

void Arrivals::done(std::size_t range, std::vector<std::size_t>& ready) {
  if (buffers_left_.empty()) return;
  const ReadRange& r = plan_.ranges[range];
  for (const Target& target : std::span(plan_.targets).subspan(r.first_target, r.target_count)) {
    if (target.buffer == kDiscard || --targets_left_[target.buffer] > 0) continue;
    for (std::size_t i = first_waiting_[target.buffer]; i < first_waiting_[target.buffer + 1]; ++i) {
      if (--buffers_left_[waiting_[i]] == 0) ready.push_back(waiting_[i]);
    }
  }
}

void Arrivals::ready_at_once(std::vector<std::size_t>& ready) const {
  for (std::size_t s = 0; s < buffers_left_.size(); ++s) {
    if (buffers_left_[s] == 0) ready.push_back(s);
  }
}

}  // namespace penstock::io
