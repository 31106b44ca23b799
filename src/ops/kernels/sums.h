#pragma once

// Sums of any type: first every lane of every chunk on its own, then the lanes of each chunk.

#include <cstdint>

#include "ops/kernels/elements.h"

namespace penstock::ops {

/// Which lane of which chunk of which result a thread works for.
struct LanePlace {
  std::int64_t chunk;
  std::int64_t result;
  std::int64_t lane;

  PENSTOCK_DEVICE std::int64_t partial(const ReduceKernel& p) const {
    return (chunk * p.outer * p.inner + result) * p.lanes + lane;
  }
};

PENSTOCK_DEVICE inline LanePlace lane_place(const ReduceKernel& p, std::uint64_t i) {
  const auto index = static_cast<std::int64_t>(i);
  const std::int64_t results = p.outer * p.inner;
  if (p.lanes_together) return {index / p.lanes / results, index / p.lanes % results, index % p.lanes};
  return {index / results / p.lanes, index % results, index / results % p.lanes};
}

/// Calls body(element's number, its memory) for the elements of a lane.
template <class Body>
PENSTOCK_DEVICE inline void for_each_of_lane(const ReduceKernel& p, const LanePlace& place, Body body) {
  const std::byte* const from =
      p.from + place.result / p.inner * p.outer_stride + place.result % p.inner * p.inner_stride;
  const std::int64_t end = p.elements - place.chunk * kChunk < kChunk ? p.elements : (place.chunk + 1) * kChunk;
  for (std::int64_t r = place.chunk * kChunk + place.lane; r < end; r += kLanes) body(r, from + r * p.element_stride);
}

template <class T>
PENSTOCK_DEVICE inline void sum_lane(const ReduceKernel& p, std::uint64_t i) {
  const LanePlace place = lane_place(p, i);
  T sum{};
  const Code type = p.from_type;
  for_each_of_lane(p, place,
                   [&sum, type](std::int64_t, const std::byte* at) { sum = Add::apply(sum, load<T>(at, type)); });
  reinterpret_cast<T*>(p.values)[place.partial(p)] = sum;
}

template <class T>
PENSTOCK_DEVICE inline void join_sums(const JoinKernel& p, std::uint64_t i) {
  T* const lanes = reinterpret_cast<T*>(p.values) + static_cast<std::int64_t>(i) * p.lanes;
  for (std::int64_t half = p.lanes / 2; half > 0; half /= 2) {
    for (std::int64_t k = 0; k < half; ++k) lanes[k] = Add::apply(lanes[k], lanes[half + k]);
  }
  reinterpret_cast<T*>(p.to_values)[i] = lanes[0];
}

}  // namespace penstock::ops
