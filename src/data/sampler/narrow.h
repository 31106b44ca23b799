#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "penstock/sampler.h"

namespace penstock::data {

/// Whether 4 bytes are enough for indices less than `bound`.
constexpr bool is_narrow(std::int64_t bound) noexcept {
  return bound <= std::int64_t{std::numeric_limits<std::uint32_t>::max()} + 1;
}

/// The order that `fill` puts into a span of `size` indices, each less than `bound`; in 4 bytes each where that is
/// enough. `fill` takes spans of both types.
template <class Fill>
Order narrowest(std::int64_t size, std::int64_t bound, Fill fill) {
  const auto as = [&]<class T>(std::vector<T> indices) {
    fill(std::span<T>(indices));
    return Order(std::move(indices));
  };
  const auto count = static_cast<std::size_t>(size);
  return is_narrow(bound) ? as(std::vector<std::uint32_t>(count)) : as(std::vector<std::int64_t>(count));
}

}  // namespace penstock::data
