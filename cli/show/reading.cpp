// Three or four channels make a picture in colour. Where the last dimension and the third from the end both could be
// channels, the last one is: image files have them there. But of many small arrays, such as kernels of convolutions
// with 3 * 3 elements, a last dimension of 3 says nothing.

#include "cli/show/reading.h"

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kSmall = 4;

bool are_colours(std::int64_t size) { return size == 3 || size == 4; }

Layout layout_of(const Shape& shape) {
  const std::size_t rank = shape.rank();
  if (rank < 3) return Layout::kHW;
  const bool are_large = shape[rank - 3] > kSmall && shape[rank - 2] > kSmall;
  if (are_colours(shape[rank - 1]) && (rank == 3 || are_large)) return Layout::kHWC;
  return are_colours(shape[rank - 3]) ? Layout::kCHW : Layout::kHW;
}

void require_channels(const Shape& shape, const Reading& reading) {
  if (reading.channels == 1 || are_colours(reading.channels)) return;
  throw Error(ErrorCode::kInvalidArgument, core::format("read as {}, shape {} has {} channels; a picture has 1, 3 or 4",
                                                        reading.layout_name(), shape.to_string(), reading.channels));
}

}  // namespace

std::string Reading::layout_name() const {
  if (is_strip) return "strip";
  return layout == Layout::kHW ? "hw" : layout == Layout::kHWC ? "hwc" : "chw";
}

Reading reading_of(const Shape& shape, std::optional<Layout> wanted) {
  const std::size_t rank = shape.rank();
  Reading out{.layout = wanted.value_or(layout_of(shape))};
  const std::size_t used = out.layout == Layout::kHW ? 2 : 3;
  if (rank == 1 && out.layout == Layout::kHW) {
    out.width = shape[0];
    out.is_strip = true;
    return out;
  }
  if (rank < used) {
    throw Error(ErrorCode::kInvalidArgument, core::format("shape {} has {} dimensions; a picture read as {} has {}",
                                                          shape.to_string(), rank, out.layout_name(), used));
  }
  const std::size_t first = rank - used;
  if (out.layout == Layout::kCHW) out.channels = shape[first];
  if (out.layout == Layout::kHWC) out.channels = shape[rank - 1];
  out.height = shape[out.layout == Layout::kCHW ? first + 1 : first];
  out.width = shape[out.layout == Layout::kCHW ? first + 2 : first + 1];
  for (std::size_t dim = 0; dim < first; ++dim) out.pictures *= shape[dim];
  require_channels(shape, out);
  return out;
}

}  // namespace penstock::cli
