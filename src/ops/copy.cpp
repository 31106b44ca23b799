#include <algorithm>
#include <array>
#include <cstring>

#include "core/format.h"
#include "ops/copy_plane.h"
#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/loop_nest.h"
#include "ops/operands.h"
#include "ops/transpose.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

/// Contiguous copies up to this need no plan.
constexpr std::size_t kSmall = std::size_t{1} << 20;

void copy_planes(const LoopNest& nest, Start start, const std::byte* from, std::byte* to) {
  const Dim& inner = nest.dims[nest.rank - 1];
  if (nest.rank == 1) return copy_plane(nest.itemsize, {}, inner, from + start.from, to + start.to);
  const Dim& outer = nest.dims[nest.rank - 2];
  for_each_index(nest, nest.rank - 2, start,
                 [&](Start at) { copy_plane(nest.itemsize, outer, inner, from + at.from, to + at.to); });
}

/// Moves the dimension that is contiguous in `from` next to the innermost, when there is one besides it.
bool move_contiguous_inward(LoopNest& nest) {
  const auto width = static_cast<std::int64_t>(nest.itemsize);
  if (nest.rank < 2 || nest.dims[nest.rank - 1].to != width) return false;
  const auto last = nest.dims.begin() + static_cast<std::ptrdiff_t>(nest.rank) - 1;
  const auto found = std::find_if(nest.dims.begin(), last, [width](const Dim& dim) { return dim.from == width; });
  if (found == last) return false;
  std::rotate(found, found + 1, last);
  return true;
}

void copy_part(const LoopNest& part, Start start, const std::byte* from, std::byte* to) {
  if (part.rank == 0) {
    std::memcpy(to + start.to, from + start.from, part.itemsize);
    return;
  }
  const auto width = static_cast<std::int64_t>(part.itemsize);
  const Dim& inner = part.dims[part.rank - 1];
  if (inner.from == width && inner.to == width) return copy_planes(part, start, from, to);
  LoopNest turned = part;
  if (!can_transpose(part.itemsize) || !move_contiguous_inward(turned)) return copy_planes(part, start, from, to);
  const Dim& across = turned.dims[turned.rank - 2];
  const Dim& along = turned.dims[turned.rank - 1];
  for_each_index(turned, turned.rank - 2, start,
                 [&](Start at) { transpose(turned.itemsize, across, along, from + at.from, to + at.to); });
}

}  // namespace

void copy(const Tensor& from, const Tensor& to) {
  const std::array<Argument, 2> arguments = {{{"from", from}, {"to", to}}};
  require_same_device("copying", arguments);
  require_not_read_only(to, "copying");
  require_same_shape(from, to, "copying");
  if (from.dtype() != to.dtype()) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("copying from {} to {}: equal types were expected; convert with to()", from.dtype().name(),
                             to.dtype().name()));
  }
  if (from.nbytes() == 0) return;
  if (!on_host(to)) return copy_on_device(*launcher_for(to.device()), from, to);
  const std::byte* const source = from.data();
  std::byte* const target = to.data();
  if (from.nbytes() <= kSmall && from.is_contiguous() && to.is_contiguous()) {
    std::memcpy(target, source, from.nbytes());
    return;
  }
  for_each_part(make_loop_nest(from, to),
                [&](const LoopNest& part, Start start) { copy_part(part, start, source, target); });
}

}  // namespace penstock::ops
