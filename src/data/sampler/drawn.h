#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "data/sampler/narrow.h"
#include "data/sampler/order_impl.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// Indices that are drawn one after the other, as far as they are asked for: the first batches need not wait for those
/// of a long epoch, which take memory as they are drawn.
template <class T, class Draw>
class Drawn final : public detail::OrderImpl {
 public:
  Drawn(std::int64_t size, Draw draw)
      : size_(size),
        draw_(std::move(draw)),
        indices_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(size))) {}

  std::int64_t size() const noexcept override { return size_; }

  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override {
    const auto begin = static_cast<std::size_t>(position);
    const std::size_t end = begin + out.size();
    const std::scoped_lock lock(mutex_);
    if (end > drawn_) {
      draw_(std::span<T>(indices_.get() + drawn_, end - drawn_));
      drawn_ = end;
    }
    std::copy_n(indices_.get() + begin, out.size(), out.begin());
  }

 private:
  std::int64_t size_;
  mutable std::mutex mutex_;
  mutable Draw draw_;
  std::unique_ptr<T[]> indices_;
  mutable std::size_t drawn_ = 0;
};

/// The order of `size` indices, each less than `bound`, in 4 bytes each where that is enough. `draw` fills one span
/// after the other, of std::uint32_t or std::int64_t, and gives the same indices however they are cut.
template <class Draw>
Order drawn(std::int64_t size, std::int64_t bound, Draw draw) {
  if (is_narrow(bound)) return Order(std::make_shared<Drawn<std::uint32_t, Draw>>(size, std::move(draw)));
  return Order(std::make_shared<Drawn<std::int64_t, Draw>>(size, std::move(draw)));
}

}  // namespace penstock::data
