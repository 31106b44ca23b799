#include "ops/loop_nest.h"

#include <algorithm>

#include "core/task_pool.h"

namespace penstock::ops {
namespace {

/// Below this a second thread costs more than it brings.
constexpr std::size_t kBytesPerThread = std::size_t{4} << 20;
/// Parts for each thread, so that a thread that is held up does not hold up the others.
constexpr std::size_t kPartsPerThread = 4;

bool continues(const Dim& outer, const Dim& inner) {
  return outer.from == inner.size * inner.from && outer.to == inner.size * inner.to;
}

/// The outermost dimension that gives every part something to do, else the longest.
std::size_t dimension_to_split(const LoopNest& nest, std::size_t parts) {
  const auto* const end = nest.dims.data() + nest.rank;
  const auto* found = std::find_if(nest.dims.data(), end,
                                   [parts](const Dim& dim) { return static_cast<std::size_t>(dim.size) >= parts; });
  if (found == end) {
    found = std::max_element(nest.dims.data(), end, [](const Dim& a, const Dim& b) { return a.size < b.size; });
  }
  return static_cast<std::size_t>(found - nest.dims.data());
}

}  // namespace

std::size_t LoopNest::bytes() const noexcept {
  std::size_t total = itemsize;
  for (std::size_t d = 0; d < rank; ++d) total *= static_cast<std::size_t>(dims[d].size);
  return total;
}

LoopNest make_loop_nest(const Tensor& from, const Tensor& to) {
  LoopNest all;
  all.itemsize = to.dtype().itemsize();
  const auto from_width = static_cast<std::int64_t>(from.dtype().itemsize());
  const auto to_width = static_cast<std::int64_t>(all.itemsize);
  for (std::size_t d = 0; d < to.rank(); ++d) {
    if (to.shape()[d] == 1) continue;
    all.dims[all.rank++] = {to.shape()[d], from.strides()[d] * from_width, to.strides()[d] * to_width};
  }
  const auto farther_apart = [](const Dim& a, const Dim& b) { return a.to != b.to ? a.to > b.to : a.from > b.from; };
  std::stable_sort(all.dims.begin(), all.dims.begin() + static_cast<std::ptrdiff_t>(all.rank), farther_apart);
  LoopNest nest;
  nest.itemsize = all.itemsize;
  for (std::size_t d = 0; d < all.rank; ++d) {
    Dim& last = nest.dims[nest.rank == 0 ? 0 : nest.rank - 1];
    if (nest.rank != 0 && continues(last, all.dims[d])) {
      last = {last.size * all.dims[d].size, all.dims[d].from, all.dims[d].to};
    } else {
      nest.dims[nest.rank++] = all.dims[d];
    }
  }
  return nest;
}

void for_each_part(const LoopNest& nest, const std::function<void(const LoopNest&, Start)>& body) {
  const std::size_t wanted = nest.bytes() / kBytesPerThread;
  const std::size_t threads = wanted < 2 ? 1 : std::min(wanted, core::usable_cpus());
  if (threads < 2 || nest.rank == 0) return body(nest, {});
  const std::size_t parts = threads * kPartsPerThread;
  const std::size_t split = dimension_to_split(nest, parts);
  const Dim& dim = nest.dims[split];
  const std::int64_t step = (dim.size + static_cast<std::int64_t>(parts) - 1) / static_cast<std::int64_t>(parts);
  const auto count = static_cast<std::size_t>((dim.size + step - 1) / step);
  core::parallel_for(count, threads, [&](std::size_t i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * step;
    LoopNest part = nest;
    part.dims[split].size = std::min(step, dim.size - first);
    body(part, {first * dim.from, first * dim.to});
  });
}

}  // namespace penstock::ops
