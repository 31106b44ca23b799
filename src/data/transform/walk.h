#pragma once

// Nested loops over views of one shape, with as few dimensions as can be: those that lie one behind the other in every
// view become one, and those of size 1 go. The two that are left innermost are given as they are, rows of runs, because
// a run may be as short as the three bytes of a pixel, and a loop over all runs of a row costs less than a call for
// each.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/transform/view.h"

namespace penstock::data {

/// Plain memory, so that it can be walked where nothing may own anything.
class Walk {
 public:
  /// More views than this are never walked together.
  static constexpr std::size_t kMaxViews = 8;
  using Places = std::array<std::int64_t, kMaxViews>;

  Walk(std::span<const std::int64_t> shape, std::span<const View> views);

  /// Runs in a row of them: the size of the dimension around the innermost one.
  std::int64_t rows() const noexcept { return row_.size; }
  /// From run to run of a row, in view `number`.
  std::int64_t row_step(std::size_t number) const noexcept { return row_.steps[number]; }
  /// Elements of an innermost run; 0 when the shape has none.
  std::int64_t run() const noexcept { return run_; }
  /// From element to element of a run, in view `number`.
  std::int64_t step(std::size_t number) const noexcept { return run_steps_[number]; }

  /// Calls body(places) for each run: where it begins in each view. A body that returns false ends the walk.
  template <class Body>
  bool for_each(const Body& body) const {
    return for_each_plane([&](Places places) {
      for (std::int64_t row = 0; row < row_.size; ++row) {
        if (!body(places)) return false;
        for (std::size_t v = 0; v < count_; ++v) places[v] += row_.steps[v];
      }
      return true;
    });
  }
  /// Calls body(places) for each plane, which is rows() runs: where its first run begins in each view.
  template <class Body>
  bool for_each_plane(const Body& body) const {
    return run_ == 0 || visit(0, begin_, body);
  }

 private:
  struct Dim {
    std::int64_t size = 0;
    Places steps = {};
  };

  template <class Body>
  bool visit(std::size_t depth, Places places, const Body& body) const {
    if (depth == outer_.size()) return body(places);
    const Dim& dim = outer_[depth];
    for (std::int64_t i = 0; i < dim.size; ++i) {
      if (!visit(depth + 1, places, body)) return false;
      for (std::size_t v = 0; v < count_; ++v) places[v] += dim.steps[v];
    }
    return true;
  }

  std::size_t count_ = 0;
  std::int64_t run_ = 1;
  Places run_steps_ = {};
  Dim row_ = {.size = 1};
  Places begin_ = {};
  std::vector<Dim> outer_;  ///< outermost first
};

}  // namespace penstock::data
