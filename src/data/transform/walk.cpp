#include "data/transform/walk.h"

#include <algorithm>

namespace penstock::data {

Walk::Walk(std::span<const std::int64_t> shape, std::span<const View> views) : count_(views.size()) {
  for (std::size_t v = 0; v < count_; ++v) begin_[v] = views[v].base;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) run_ = 0;
    if (shape[d] == 1) continue;
    Dim dim{.size = shape[d]};
    for (std::size_t v = 0; v < count_; ++v) dim.steps[v] = views[v].steps[d];
    const auto goes_on = [&](const Dim& before) {
      for (std::size_t v = 0; v < count_; ++v) {
        if (before.steps[v] != dim.steps[v] * dim.size) return false;
      }
      return true;
    };
    if (!outer_.empty() && goes_on(outer_.back())) {
      dim.size *= outer_.back().size;
      outer_.back() = dim;
    } else {
      outer_.push_back(dim);
    }
  }
  if (run_ == 0 || outer_.empty()) return;
  run_ = outer_.back().size;
  run_steps_ = outer_.back().steps;
  outer_.pop_back();
  if (outer_.empty()) return;
  row_ = outer_.back();
  outer_.pop_back();
}

}  // namespace penstock::data
