#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/dataset/array_parts.h"
#include "data/dataset/row_pieces.h"
#include "data/sample/layout.h"

namespace penstock::data {

/// The sizes that windows have in common, in rows.
struct WindowSizes {
  std::int64_t length = 1;
  std::int64_t stride = 1;
  std::int64_t shift = 0;

  /// kInvalidArgument for sizes that no window can have.
  static WindowSizes checked(std::int64_t length, std::optional<std::int64_t> stride, std::int64_t shift);

  /// Of a window with what it is shifted to.
  std::int64_t span() const noexcept { return length + shift; }
  /// The number of tensors of a sample.
  std::size_t parts() const noexcept { return shift == 0 ? 1 : 2; }
  /// Where the tensors of the window lie that begins at that row.
  void place(const ArrayParts& parts, std::int64_t row, std::span<Payload> out) const;
  /// The same of one that may have been put together; its rows are some.
  void place(const ArrayParts& parts, const std::optional<RowPieces::Place>& found, std::span<Payload> out) const;
  /// How many windows so many rows have.
  std::int64_t count_in(std::int64_t rows) const noexcept { return rows < span() ? 0 : (rows - span()) / stride + 1; }
  /// "the 1025 rows of a window (length 1024, shift 1)".
  std::string text() const;
};

/// What samples are that are windows of the array.
LayoutPtr window_layout(const ArrayParts& parts, const WindowSizes& sizes);

}  // namespace penstock::data
