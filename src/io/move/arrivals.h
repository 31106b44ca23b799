#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "io/move/move.h"

namespace penstock::io {

/// Which steps of a move may run: a step is ready when every range that fills one of its buffers is done. The work
/// queue asks at the end of each range. Not thread-safe.
class Arrivals {
 public:
  /// `buffers`: how many there are. The spans must outlive this.
  Arrivals(const Plan& plan, std::span<const Step> steps, std::size_t buffers);

  /// Range `range` is done: appends the steps that this makes ready to `ready`.
  void done(std::size_t range, std::vector<std::size_t>& ready);
  /// Appends the steps that wait for no range at all.
  void ready_at_once(std::vector<std::size_t>& ready) const;

 private:
  const Plan& plan_;
  std::vector<std::size_t> targets_left_;   // for each buffer
  std::vector<std::size_t> buffers_left_;   // for each step
  std::vector<std::size_t> first_waiting_;  // for each buffer, and one more: where its steps begin in waiting_
  std::vector<std::size_t> waiting_;
};

}  // namespace penstock::io
