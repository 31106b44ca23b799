// How a view is cut. Dimensions are looked at from the narrowest stride to the widest. As long as the elements lie
// close together and fit into the scratch, a dimension becomes part of one read. The first dimension that does not fit
// is cut, and so are all wider ones: their indices number the parts, so that the n-th part is computed and not stored.

#include "io/move/strided_plan.h"

#include <algorithm>
#include <utility>

#include "core/view.h"

namespace penstock::io {
namespace {

/// Dimensions that have more than one index, narrowest stride first.
std::vector<std::size_t> by_stride(const StridedView& view) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < view.shape.rank(); ++d) {
    if (view.shape[d] > 1) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](std::size_t a, std::size_t b) { return view.strides[a] < view.strides[b]; });
  return dims;
}

}  // namespace

StridedPlan::StridedPlan(StridedView view, const ReadCosts& costs) : view_(std::move(view)) {
  cut(costs);
  for (const Cut& c : cuts_) count_ *= c.parts;
  Shape whole = view_.shape;
  for (const Cut& c : cuts_) whole[c.dim] = c.width;
  read_bytes_ = count_ * *core::view_span(whole, view_.strides, view_.itemsize);
}

void StridedPlan::cut(const ReadCosts& costs) {
  std::uint64_t extent = view_.itemsize;
  bool skipping = false;
  for (const std::size_t dim : by_stride(view_)) {
    const auto size = static_cast<std::uint64_t>(view_.shape[dim]);
    const std::uint64_t step = static_cast<std::uint64_t>(view_.strides[dim]) * view_.itemsize;
    skipping = skipping || step - std::min(step, extent) > costs.gap_behind(extent);
    if (!skipping && extent + (size - 1) * step <= kScratchBytes) {
      extent += (size - 1) * step;
      continue;
    }
    std::uint64_t width = 1;
    if (!skipping && extent <= kScratchBytes) width = (kScratchBytes - extent) / std::max<std::uint64_t>(step, 1) + 1;
    cuts_.push_back({dim, static_cast<std::int64_t>(width), (size - 1) / width + 1});
    skipping = true;
  }
  std::reverse(cuts_.begin(), cuts_.end());
}

StridedPlan::ViewPart StridedPlan::part(std::uint64_t index) const {
  ViewPart out;
  out.shape = view_.shape;
  for (std::size_t d = 0; d < out.shape.rank(); ++d) out.first.push_back(0);
  std::uint64_t element = 0;
  for (std::size_t i = cuts_.size(); i-- > 0;) {
    const Cut& cut = cuts_[i];
    const auto start = static_cast<std::int64_t>(index % cut.parts) * cut.width;
    index /= cut.parts;
    out.first[cut.dim] = start;
    out.shape[cut.dim] = std::min(cut.width, view_.shape[cut.dim] - start);
    element += static_cast<std::uint64_t>(start * view_.strides[cut.dim]);
  }
  out.offset = view_.offset + element * view_.itemsize;
  out.bytes = *core::view_span(out.shape, view_.strides, view_.itemsize);
  return out;
}

}  // namespace penstock::io
