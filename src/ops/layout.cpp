#include "ops/layout.h"

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
std::size_t dimension_to_split(const Layout& layout, std::size_t parts) {
  const auto* const end = layout.dims.data() + layout.rank;
  const auto* found = std::find_if(layout.dims.data(), end,
                                   [parts](const Dim& dim) { return static_cast<std::size_t>(dim.size) >= parts; });
  if (found == end) {
    found = std::max_element(layout.dims.data(), end, [](const Dim& a, const Dim& b) { return a.size < b.size; });
  }
  return static_cast<std::size_t>(found - layout.dims.data());
}

}  // namespace

std::size_t Layout::bytes() const noexcept {
  std::size_t total = itemsize;
  for (std::size_t d = 0; d < rank; ++d) total *= static_cast<std::size_t>(dims[d].size);
  return total;
}

Layout make_layout(const Tensor& from, const Tensor& to) {
  Layout all;
  all.itemsize = to.dtype().itemsize();
  const auto from_width = static_cast<std::int64_t>(from.dtype().itemsize());
  const auto to_width = static_cast<std::int64_t>(all.itemsize);
  for (std::size_t d = 0; d < to.rank(); ++d) {
    if (to.shape()[d] == 1) continue;
    all.dims[all.rank++] = {to.shape()[d], from.strides()[d] * from_width, to.strides()[d] * to_width};
  }
  const auto farther_apart = [](const Dim& a, const Dim& b) { return a.to != b.to ? a.to > b.to : a.from > b.from; };
  std::stable_sort(all.dims.begin(), all.dims.begin() + static_cast<std::ptrdiff_t>(all.rank), farther_apart);
  Layout layout;
  layout.itemsize = all.itemsize;
  for (std::size_t d = 0; d < all.rank; ++d) {
    Dim& last = layout.dims[layout.rank == 0 ? 0 : layout.rank - 1];
    if (layout.rank != 0 && continues(last, all.dims[d])) {
      last = {last.size * all.dims[d].size, all.dims[d].from, all.dims[d].to};
    } else {
      layout.dims[layout.rank++] = all.dims[d];
    }
  }
  return layout;
}

void for_each_part(const Layout& layout, const std::function<void(const Layout&, Start)>& body) {
  const std::size_t wanted = layout.bytes() / kBytesPerThread;
  const std::size_t threads = wanted < 2 ? 1 : std::min(wanted, core::usable_cpus());
  if (threads < 2 || layout.rank == 0) return body(layout, {});
  const std::size_t parts = threads * kPartsPerThread;
  const std::size_t split = dimension_to_split(layout, parts);
  const Dim& dim = layout.dims[split];
  const std::int64_t step = (dim.size + static_cast<std::int64_t>(parts) - 1) / static_cast<std::int64_t>(parts);
  const auto count = static_cast<std::size_t>((dim.size + step - 1) / step);
  core::parallel_for(count, threads, [&](std::size_t i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * step;
    Layout part = layout;
    part.dims[split].size = std::min(step, dim.size - first);
    body(part, {first * dim.from, first * dim.to});
  });
}

}  // namespace penstock::ops
