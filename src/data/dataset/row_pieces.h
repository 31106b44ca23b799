#pragma once

// Samples that do not lie in one run, because they go over the end of an array or of a slice: they are put together in
// memory when they are fetched. All of a batch are copied together, so that each array has one guard, and servers are
// asked once.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset/array_parts.h"
#include "data/sample/work.h"

namespace penstock::data {

/// Those of one fetch. `begin`, `add` and `end` for each sample, then `copy`. `parts` outlives it.
class RowPieces {
 public:
  explicit RowPieces(const ArrayParts& parts) noexcept : parts_(parts) {}

  /// The sample at this position of the batch.
  void begin(std::size_t position) noexcept;
  /// Its next rows; they may lie in several arrays.
  void add(std::int64_t row, std::int64_t rows);
  /// Where all its rows lie: from `row` on in one array, or in memory that `copy` fills. Nothing for no rows.
  struct Place {
    std::int64_t row = 0;
    std::byte* memory = nullptr;
  };
  std::optional<Place> end(Scratch& scratch);
  /// All samples that are put together. Throws SampleError.
  void copy(const Work& work);

 private:
  struct Piece {
    std::byte* to = nullptr;
    std::int64_t row = 0;
    std::int64_t rows = 0;
    std::size_t array = 0;
    std::size_t position = 0;  ///< of the sample
  };
  class Mapped;

  std::uint64_t bytes_of(const Piece& piece) const noexcept {
    return static_cast<std::uint64_t>(piece.rows) * parts_.row_bytes();
  }
  void copy_mapped(std::span<const Piece> pieces, const std::byte* first) const;

  const ArrayParts& parts_;
  std::vector<Piece> pieces_;
  std::size_t first_ = 0;  ///< piece of the sample at hand
  std::size_t position_ = 0;
};

}  // namespace penstock::data
