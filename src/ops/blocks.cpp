#include "ops/blocks.h"

#include <algorithm>
#include <cstring>

#include "core/task_pool.h"
#include "ops/copy_plane.h"

namespace penstock::ops {
namespace {

/// Below this a second thread costs more than it brings.
constexpr double kBlockElementsPerThread = 256 * 1024;
/// Ranges for each thread, so that a thread that is held up does not hold up the others.
constexpr std::int64_t kRangesPerThread = 4;

}  // namespace

BlockReader::BlockReader(const Tensor& tensor, const Shape& shape, DType::Code common, DType::Code type)
    : data_(tensor.data()),
      source_(tensor.dtype().code()),
      common_(common),
      type_(type),
      width_(tensor.dtype().itemsize()) {
  const std::size_t extra = shape.rank() - tensor.rank();
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    const bool repeated = d < extra || tensor.shape()[d - extra] == 1;
    const std::int64_t step = repeated ? 0 : tensor.strides()[d - extra] * static_cast<std::int64_t>(width_);
    if (rank_ > 0 && dims_[rank_ - 1].step == shape[d] * step) {
      dims_[rank_ - 1] = {dims_[rank_ - 1].size * shape[d], step};
    } else {
      dims_[rank_++] = {shape[d], step};
    }
  }
  contiguous_ = rank_ == 0 || (rank_ == 1 && dims_[0].step == static_cast<std::int64_t>(width_));
  repeats_one_ = rank_ == 1 && dims_[0].step == 0;
}

void BlockReader::convert(const std::byte* from, std::byte* to, std::size_t count) const {
  if (source_ == common_ || common_ == type_) return ops::convert(source_, from, type_, to, count);
  Block between;
  ops::convert(source_, from, common_, between.bytes.data(), count);
  ops::convert(common_, between.bytes.data(), type_, to, count);
}

/// Copies runs of the innermost dimension, one behind the other.
void BlockReader::gather(std::int64_t first, std::size_t count, std::byte* to) const {
  std::array<std::int64_t, Shape::kMaxRank> index;
  const std::byte* from = data_;
  for (std::size_t d = rank_; d-- > 0;) {
    index[d] = first % dims_[d].size;
    first /= dims_[d].size;
    from += index[d] * dims_[d].step;
  }
  const std::size_t inner = rank_ - 1;
  auto left = static_cast<std::int64_t>(count);
  while (true) {
    const std::int64_t run = std::min(left, dims_[inner].size - index[inner]);
    const auto bytes = static_cast<std::size_t>(run) * width_;
    if (dims_[inner].step == static_cast<std::int64_t>(width_)) {
      std::memcpy(to, from, bytes);
    } else {
      copy_row(width_, {run, dims_[inner].step, static_cast<std::int64_t>(width_)}, from, to);
    }
    left -= run;
    if (left == 0) return;
    to += bytes;
    from -= index[inner] * dims_[inner].step;
    index[inner] = 0;
    for (std::size_t d = inner; d-- > 0;) {
      from += dims_[d].step;
      if (++index[d] < dims_[d].size) break;
      from -= index[d] * dims_[d].step;
      index[d] = 0;
    }
  }
}

void BlockReader::fill() {
  const std::size_t to_width = DType(type_).itemsize();
  std::byte* const block = converted_.bytes.data();
  convert(data_, block, 1);
  for (std::size_t done = 1; done < kBlock; done *= 2) std::memcpy(block + done * to_width, block, done * to_width);
  filled_ = true;
}

const std::byte* BlockReader::read(std::int64_t first, std::size_t count) {
  if (repeats_one_) {
    if (!filled_) fill();
    return converted_.bytes.data();
  }
  const std::byte* elements = data_ + static_cast<std::size_t>(first) * width_;
  if (!contiguous_) {
    gather(first, count, gathered_.bytes.data());
    elements = gathered_.bytes.data();
  }
  if (source_ == type_) return elements;
  convert(elements, converted_.bytes.data(), count);
  return converted_.bytes.data();
}

void for_each_range(std::int64_t count, std::int64_t elements, std::int64_t step,
                    const std::function<void(std::int64_t, std::int64_t)>& work) {
  const double wanted = static_cast<double>(count) * static_cast<double>(elements) / kBlockElementsPerThread;
  const std::size_t threads = wanted < 2 ? 1 : std::min(static_cast<std::size_t>(wanted), core::usable_cpus());
  if (threads == 1) return work(0, count);
  const std::int64_t ranges = static_cast<std::int64_t>(threads) * kRangesPerThread;
  const std::int64_t size = ((count + ranges - 1) / ranges + step - 1) / step * step;
  core::parallel_for(static_cast<std::size_t>((count + size - 1) / size), threads, [&](std::size_t i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * size;
    work(first, std::min(first + size, count));
  });
}

}  // namespace penstock::ops
