#include "data/sample/runs.h"

namespace penstock::data {

Runs::Runs(const Shape& shape, const Strides& from, const Strides& to, std::size_t itemsize) {
  for (const std::int64_t count : shape) {
    if (count == 0) return;
  }
  run_bytes_ = itemsize;
  for (std::size_t d = shape.rank(); d-- > 0;) {
    if (shape[d] == 1 || (from[d] == 0 && to[d] == 0)) continue;  // repeated on both sides
    const Loop loop{static_cast<std::uint64_t>(shape[d]), static_cast<std::uint64_t>(from[d]) * itemsize,
                    static_cast<std::uint64_t>(to[d]) * itemsize};
    if (rank_ == 0 && loop.from_step == run_bytes_ && loop.to_step == run_bytes_) {
      run_bytes_ *= loop.count;
      continue;
    }
    if (rank_ > 0) {
      Loop& inner = loops_[rank_ - 1];
      if (loop.from_step == inner.from_step * inner.count && loop.to_step == inner.to_step * inner.count) {
        inner.count *= loop.count;
        continue;
      }
    }
    loops_[rank_++] = loop;
  }
}

}  // namespace penstock::data
