#pragma once

// How elementwise operations and reductions go through tensors of any strides and types: blocks of a few hundred
// elements that lie one behind the other, so that their loops know neither.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "ops/convert.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// Elements that operations work on at a time: few enough that a handful of blocks stay in the first cache.
inline constexpr std::size_t kBlock = 512;
/// Room for a block of any numeric type.
struct alignas(64) Block {
  std::array<std::byte, kBlock * 16> bytes;
};

/// Reads a tensor as if it were repeated to a larger shape, contiguous and of another type: block by block, in C order.
/// Where it already is so, blocks are its own memory. In host memory; not thread-safe, cheap to copy. Refers to the
/// tensor's memory, which must outlive it.
class BlockReader {
 public:
  /// `shape` is what tensor's shape broadcasts to. Elements are converted to `common` and then to `type`, which are
  /// numeric.
  BlockReader(const Tensor& tensor, const Shape& shape, DType::Code common, DType::Code type);

  /// The elements [first, first + count) of the repeated tensor, count <= kBlock; valid until the next call.
  const std::byte* read(std::int64_t first, std::size_t count);

 private:
  struct Dimension {
    std::int64_t size;
    std::int64_t step;  ///< in bytes
  };

  void gather(std::int64_t first, std::size_t count, std::byte* to) const;
  void convert(const std::byte* from, std::byte* to, std::size_t count) const;
  void fill();

  const std::byte* data_;
  DType::Code source_;
  DType::Code common_;
  DType::Code type_;
  std::size_t width_;
  std::size_t rank_ = 0;
  std::array<Dimension, Shape::kMaxRank> dims_;
  bool contiguous_;
  bool repeats_one_;
  bool filled_ = false;
  Block gathered_;
  Block converted_;
};

/// Gives each block of results its place in a contiguous tensor, converting what was computed in another type. In host
/// memory; one thread at a time.
class BlockWriter {
 public:
  BlockWriter(const Tensor& to, DType::Code computed) noexcept : to_(to), computed_(computed) {}

  /// Calls compute(place), which writes the elements [first, first + count), count <= kBlock, at `place`.
  template <class Compute>
  void write(std::int64_t first, std::size_t count, Compute compute) {
    std::byte* const place = to_.data() + static_cast<std::size_t>(first) * to_.dtype().itemsize();
    if (computed_ == to_.dtype().code()) return compute(place);
    compute(block_.bytes.data());
    convert(computed_, block_.bytes.data(), to_.dtype().code(), place, count);
  }

 private:
  const Tensor& to_;
  DType::Code computed_;
  Block block_;
};

/// Calls work(first, last) for ranges that together are [0, count), on several threads where that gains. An item costs
/// as much as `elements` elements; ranges begin at multiples of `step`.
void for_each_range(std::int64_t count, std::int64_t elements, std::int64_t step,
                    const std::function<void(std::int64_t, std::int64_t)>& work);
/// The same for single elements, in ranges of whole blocks.
inline void for_each_range(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& work) {
  for_each_range(count, 1, static_cast<std::int64_t>(kBlock), work);
}

/// Calls body(first, count) for the blocks of [first, last).
template <class Body>
void for_each_block(std::int64_t first, std::int64_t last, Body body) {
  for (; first < last; first += static_cast<std::int64_t>(kBlock)) {
    body(first, static_cast<std::size_t>(std::min(static_cast<std::int64_t>(kBlock), last - first)));
  }
}

}  // namespace penstock::ops
