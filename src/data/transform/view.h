#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/shape.h"

namespace penstock::data {

/// A place in an array for each element of a shape: element (i, j, ...) lies at base + i * steps[0] + j * steps[1] ...
/// Steps may be 0 or negative, which is how parameters are repeated and dimensions are flipped. Counted in elements.
struct View {
  std::int64_t base = 0;
  std::vector<std::int64_t> steps;

  void permute(const std::vector<std::size_t>& order) {
    std::vector<std::int64_t> moved;
    moved.reserve(order.size());
    for (const std::size_t dim : order) moved.push_back(steps[dim]);
    steps = std::move(moved);
  }
  void begin_at(std::size_t dim, std::int64_t first) { base += first * steps[dim]; }
  void flip(std::size_t dim, std::int64_t size) {
    base += (size - 1) * steps[dim];
    steps[dim] = -steps[dim];
  }
};

}  // namespace penstock::data
