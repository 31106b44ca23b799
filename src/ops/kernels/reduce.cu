// Kernels of reductions of real numbers: first every lane of every chunk on its own, then the lanes of each chunk.

#include "ops/kernels/sums.h"

namespace penstock::ops {

/// Whether `value` takes the place of `best`; NaN beats everything and itself does not.
template <class T>
PENSTOCK_DEVICE inline bool beats(T value, T best, bool smallest) {
  const bool beyond = smallest ? value < best : value > best;
  return beyond || (value != value && best == best);
}

template <class T>
PENSTOCK_DEVICE inline void search_lane(const ReduceKernel& p, std::uint64_t i) {
  const LanePlace place = lane_place(p, i);
  T best{};
  std::int64_t where = -1;
  const std::int64_t step = p.outer * p.inner;
  for_each_of_lane(p, place, [&](std::int64_t r, const std::byte* at) {
    const T value = load<T>(at, p.from_type);
    if (where >= 0 && !beats(value, best, p.smallest)) return;
    best = value;
    where = p.from_indices == nullptr ? r : p.from_indices[r * step + place.result];
  });
  reinterpret_cast<T*>(p.values)[place.partial(p)] = best;
  p.indices[place.partial(p)] = where;
}

template <class T>
PENSTOCK_DEVICE inline void join_extremes(const JoinKernel& p, std::uint64_t i) {
  const std::int64_t first = static_cast<std::int64_t>(i) * p.lanes;
  const T* const values = reinterpret_cast<const T*>(p.values) + first;
  const std::int64_t* const indices = p.indices + first;
  T best = values[0];
  std::int64_t where = indices[0];
  for (std::int64_t k = 1; k < p.lanes; ++k) {
    if (indices[k] < 0) continue;  // a lane without elements
    const bool better = beats(values[k], best, p.smallest);
    const bool equal_and_earlier = !better && !beats(best, values[k], p.smallest) && indices[k] < where;
    if (!better && !equal_and_earlier) continue;
    best = values[k];
    where = indices[k];
  }
  reinterpret_cast<T*>(p.to_values)[i] = best;
  p.to_indices[i] = where;
}

PENSTOCK_KERNEL(penstock_sum_lanes, ReduceKernel) {
  switch (p.type) {
    case Code::kFloat32:
      return sum_lane<float>(p, i);
    case Code::kFloat64:
      return sum_lane<double>(p, i);
    default:
      return sum_lane<std::int64_t>(p, i);
  }
}

PENSTOCK_KERNEL(penstock_join_sums, JoinKernel) {
  switch (p.type) {
    case Code::kFloat32:
      return join_sums<float>(p, i);
    case Code::kFloat64:
      return join_sums<double>(p, i);
    default:
      return join_sums<std::int64_t>(p, i);
  }
}

PENSTOCK_KERNEL(penstock_extreme_lanes, ReduceKernel) {
  switch (p.type) {
    case Code::kFloat32:
      return search_lane<float>(p, i);
    case Code::kFloat64:
      return search_lane<double>(p, i);
    case Code::kUInt64:
      return search_lane<std::uint64_t>(p, i);
    default:
      return search_lane<std::int64_t>(p, i);
  }
}

PENSTOCK_KERNEL(penstock_join_extremes, JoinKernel) {
  switch (p.type) {
    case Code::kFloat32:
      return join_extremes<float>(p, i);
    case Code::kFloat64:
      return join_extremes<double>(p, i);
    case Code::kUInt64:
      return join_extremes<std::uint64_t>(p, i);
    default:
      return join_extremes<std::int64_t>(p, i);
  }
}

}  // namespace penstock::ops
