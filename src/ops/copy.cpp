#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ops/kernels.h"
#include "ops/layout.h"
#include "ops/operands.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

constexpr std::int64_t kLine = 64;
/// Contiguous copies up to this need no plan.
constexpr std::size_t kSmall = std::size_t{1} << 20;

template <std::size_t kWidth>
struct Element {
  std::array<std::byte, kWidth> bytes;
};

/// Runs that are contiguous on both sides.
void copy_runs(const Layout& layout, Start start, const std::byte* from, std::byte* to) {
  const std::size_t bytes = static_cast<std::size_t>(layout.dims[layout.rank - 1].size) * layout.itemsize;
  for_each_index(layout, layout.rank - 1, start, [&](Start at) { std::memcpy(to + at.to, from + at.from, bytes); });
}

template <std::size_t kWidth>
void copy_elements(const Dim& dim, const std::byte* from, std::byte* to) {
  for (std::int64_t i = 0; i < dim.size; ++i) std::memcpy(to + i * dim.to, from + i * dim.from, kWidth);
}

void copy_any_elements(const Dim& dim, std::size_t width, const std::byte* from, std::byte* to) {
  for (std::int64_t i = 0; i < dim.size; ++i) std::memcpy(to + i * dim.to, from + i * dim.from, width);
}

void copy_row(const Dim& dim, std::size_t width, const std::byte* from, std::byte* to) {
  switch (width) {
    case 1:
      return copy_elements<1>(dim, from, to);
    case 2:
      return copy_elements<2>(dim, from, to);
    case 4:
      return copy_elements<4>(dim, from, to);
    case 8:
      return copy_elements<8>(dim, from, to);
    case 16:
      return copy_elements<16>(dim, from, to);
    default:
      return copy_any_elements(dim, width, from, to);
  }
}

void copy_rows(const Layout& layout, Start start, const std::byte* from, std::byte* to) {
  const Dim& row = layout.dims[layout.rank - 1];
  for_each_index(layout, layout.rank - 1, start,
                 [&](Start at) { copy_row(row, layout.itemsize, from + at.from, to + at.to); });
}

/// Transposes a tile: reads `rows` runs of `columns` elements, writes `columns` runs of `rows`. Each run is a cache
/// line that is touched once; the elements change places in a buffer that stays in the first cache.
template <std::size_t kWidth, std::int64_t kSide>
void transpose_tile(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                    std::int64_t rows, std::int64_t columns) {
  using Run = std::array<Element<kWidth>, kSide>;
  std::array<Run, kSide> tile;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::memcpy(tile[static_cast<std::size_t>(r)].data(), from + r * from_step,
                static_cast<std::size_t>(columns) * kWidth);
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    Run run;
    for (std::int64_t r = 0; r < rows; ++r) run[r] = tile[r][c];
    std::memcpy(to + c * to_step, run.data(), static_cast<std::size_t>(rows) * kWidth);
  }
}

/// Two dimensions, `across` contiguous in `from` and `along` contiguous in `to`.
template <std::size_t kWidth>
void transpose(const Dim& across, const Dim& along, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kSide = std::max<std::int64_t>(kLine / static_cast<std::int64_t>(kWidth), 8);
  for (std::int64_t i = 0; i < along.size; i += kSide) {
    const std::int64_t rows = std::min(kSide, along.size - i);
    for (std::int64_t j = 0; j < across.size; j += kSide) {
      const std::int64_t columns = std::min(kSide, across.size - j);
      const std::byte* const source = from + i * along.from + j * across.from;
      std::byte* const target = to + i * along.to + j * across.to;
      if (rows == kSide && columns == kSide) {
        transpose_tile<kWidth, kSide>(source, along.from, target, across.to, kSide, kSide);
      } else {
        transpose_tile<kWidth, kSide>(source, along.from, target, across.to, rows, columns);
      }
    }
  }
}

using Transpose = void (*)(const Dim&, const Dim&, const std::byte*, std::byte*);

Transpose transpose_for(std::size_t width) noexcept {
  switch (width) {
    case 1:
      return transpose<1>;
    case 2:
      return transpose<2>;
    case 4:
      return transpose<4>;
    case 8:
      return transpose<8>;
    case 16:
      return transpose<16>;
    default:
      return nullptr;
  }
}

/// Moves the dimension that is contiguous in `from` next to the innermost, when there is one besides it.
bool move_contiguous_inward(Layout& layout) {
  const auto width = static_cast<std::int64_t>(layout.itemsize);
  if (layout.rank < 2 || layout.dims[layout.rank - 1].to != width) return false;
  const auto last = layout.dims.begin() + static_cast<std::ptrdiff_t>(layout.rank) - 1;
  const auto found = std::find_if(layout.dims.begin(), last, [width](const Dim& dim) { return dim.from == width; });
  if (found == last) return false;
  std::rotate(found, found + 1, last);
  return true;
}

void copy_part(const Layout& part, Start start, const std::byte* from, std::byte* to) {
  if (part.rank == 0) {
    std::memcpy(to + start.to, from + start.from, part.itemsize);
    return;
  }
  const auto width = static_cast<std::int64_t>(part.itemsize);
  const Dim& inner = part.dims[part.rank - 1];
  if (inner.from == width && inner.to == width) return copy_runs(part, start, from, to);
  const Transpose kernel = transpose_for(part.itemsize);
  Layout turned = part;
  if (kernel == nullptr || !move_contiguous_inward(turned)) return copy_rows(part, start, from, to);
  const Dim& across = turned.dims[turned.rank - 2];
  for_each_index(turned, turned.rank - 2, start,
                 [&](Start at) { kernel(across, turned.dims[turned.rank - 1], from + at.from, to + at.to); });
}

}  // namespace

void copy(const Tensor& from, const Tensor& to) {
  require_host(from, "copying");
  require_writable(to, "copying");
  require_same_shape(from, to, "copying");
  if (from.dtype() != to.dtype()) {
    throw Error(ErrorCode::kDTypeMismatch,
                fmt::format("copying from {} to {}: equal types were expected; convert with to()", from.dtype().name(),
                            to.dtype().name()));
  }
  if (from.nbytes() == 0) return;
  const std::byte* const source = from.data();
  std::byte* const target = to.data();
  if (from.nbytes() <= kSmall && from.is_contiguous() && to.is_contiguous()) {
    std::memcpy(target, source, from.nbytes());
    return;
  }
  for_each_part(make_layout(from, to),
                [&](const Layout& part, Start start) { copy_part(part, start, source, target); });
}

}  // namespace penstock::ops
