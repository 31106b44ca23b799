#pragma once

// Two tensors of one shape as few nested loops: what `copy`, `cast` and all walks over strides begin with.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "penstock/tensor.h"

namespace penstock::ops {

/// One dimension of two tensors of equal shape: how far apart its elements lie in each, in bytes.
struct Dim {
  std::int64_t size = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// The elements of two tensors of equal shape and width, as few nested loops as their strides allow: dimensions of size
/// 1 are gone, those that continue each other are one, and the order is that of `to` in memory, so that writes are as
/// sequential as can be. Dimension order has no meaning left; elements still correspond.
struct LoopNest {
  std::array<Dim, Shape::kMaxRank> dims;
  std::size_t rank = 0;
  std::size_t itemsize = 0;

  std::size_t bytes() const noexcept;
};

/// Of tensors of equal shape, with one element or more.
LoopNest make_loop_nest(const Tensor& from, const Tensor& to);
/// Of one tensor alone: `from` steps are those of `to`.
inline LoopNest make_loop_nest(const Tensor& tensor) { return make_loop_nest(tensor, tensor); }

/// Where a part of a nest begins, in bytes from the first element.
struct Start {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Calls body(part, start) for parts that together are `nest`, on several threads when it is large enough to gain
/// from that.
void for_each_part(const LoopNest& nest, const std::function<void(const LoopNest&, Start)>& body);

/// Calls body(start) for every index of the first `rank` dimensions.
template <class Body>
void for_each_index(const LoopNest& nest, std::size_t rank, Start start, Body&& body) {
  if (rank == 0) return body(start);
  std::array<std::int64_t, Shape::kMaxRank> index{};
  while (true) {
    body(start);
    std::size_t d = rank;
    while (d-- > 0) {
      const Dim& dim = nest.dims[d];
      start.from += dim.from;
      start.to += dim.to;
      if (++index[d] < dim.size) break;
      start.from -= dim.size * dim.from;
      start.to -= dim.size * dim.to;
      index[d] = 0;
    }
    if (d == SIZE_MAX) return;
  }
}

}  // namespace penstock::ops
