#pragma once

// `penstock show`: which dimensions of a tensor are rows, columns and colours.

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/shape.h"

namespace penstock::cli {

enum class Layout : std::uint8_t { kHW, kHWC, kCHW };

/// How a tensor's dimensions are taken for pictures: the last two or three are one of `height` * `width`, with
/// `channels` colours if not 1, and those before count pictures. A tensor of one dimension is one row.
struct Reading {
  Layout layout = Layout::kHW;
  std::int64_t pictures = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;
  bool is_strip = false;

  std::string layout_name() const;
};

/// The reading of `shape`, which has at least one dimension and elements, in the layout that was asked for, or else in
/// the one that the numbers of channels suggest. kInvalidArgument where the shape has no such reading.
Reading reading_of(const Shape& shape, std::optional<Layout> wanted);

}  // namespace penstock::cli
