#include "format/dcp/chunk_runs.h"

namespace penstock::format::dcp {

ChunkRuns::ChunkRuns(const Box& box, const Shape& shape, std::size_t itemsize) : run_bytes_(itemsize) {
  std::uint64_t stride = itemsize;  // of dimension d of the tensor, in bytes
  bool contiguous = true;           // all dimensions behind d are whole
  for (std::size_t d = shape.rank(); d-- > 0;) {
    const auto size = static_cast<std::uint64_t>(box.shape[d]);
    first_ += static_cast<std::uint64_t>(box.at[d]) * stride;
    if (contiguous) {
      run_bytes_ *= size;
    } else if (size > 1) {
      steps_.push_back({size, stride});
      count_ *= size;
    }
    contiguous = contiguous && box.shape[d] == shape[d];
    stride *= static_cast<std::uint64_t>(shape[d]);
  }
}

std::uint64_t ChunkRuns::place(std::uint64_t i) const noexcept {
  std::uint64_t at = first_;
  for (const Step& step : steps_) {
    at += i % step.count * step.bytes;
    i /= step.count;
  }
  return at;
}

std::uint64_t ChunkRuns::first_behind(std::uint64_t at) const noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (place(middle) + run_bytes_ > at) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace penstock::format::dcp
