#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "penstock/shape.h"

namespace penstock::data {

/// How elements of one strided layout go to another of the same shape: equal contiguous runs, as long as both sides
/// allow, in nested loops. Pure.
class Runs {
 public:
  /// Strides in elements, never negative.
  Runs(const Shape& shape, const Strides& from, const Strides& to, std::size_t itemsize);

  /// 0 when there is nothing to copy.
  std::uint64_t run_bytes() const noexcept { return run_bytes_; }
  /// True when everything is one run.
  bool single() const noexcept { return rank_ == 0; }

  /// Calls body(from_offset, to_offset) for each run, in the order of the target; offsets in bytes.
  template <class Body>
  void for_each(Body&& body) const {
    if (run_bytes_ != 0) walk(0, 0, 0, body);
  }

 private:
  struct Loop {
    std::uint64_t count;
    std::uint64_t from_step;
    std::uint64_t to_step;
  };

  template <class Body>
  void walk(std::size_t depth, std::uint64_t from, std::uint64_t to, Body& body) const {
    if (depth == rank_) {
      body(from, to);
      return;
    }
    const Loop& loop = loops_[rank_ - 1 - depth];
    for (std::uint64_t i = 0; i < loop.count; ++i) {
      walk(depth + 1, from + i * loop.from_step, to + i * loop.to_step, body);
    }
  }

  std::uint64_t run_bytes_ = 0;
  std::size_t rank_ = 0;
  std::array<Loop, Shape::kMaxRank> loops_;  ///< innermost first
};

}  // namespace penstock::data
