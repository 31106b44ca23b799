#pragma once

#include <cstdint>
#include <vector>

#include "format/dcp/metadata.h"

namespace penstock::format::dcp {

/// Where the bytes of a chunk go in the whole tensor, both in C order: the chunk is a sequence of runs of equal length,
/// each of which is contiguous in the tensor. Runs come in the same order on both sides, so that any range of the
/// tensor takes one contiguous range of the chunk. Pure arithmetic.
class ChunkRuns {
 public:
  /// The box must lie inside `shape` and have elements.
  ChunkRuns(const Box& box, const Shape& shape, std::size_t itemsize);

  std::uint64_t run_bytes() const noexcept { return run_bytes_; }
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t bytes() const noexcept { return run_bytes_ * count_; }
  /// Byte of the tensor where run `i` begins. Grows with i.
  std::uint64_t place(std::uint64_t i) const noexcept;
  /// The first byte of the tensor, and the byte behind the last.
  std::uint64_t begin() const noexcept { return first_; }
  std::uint64_t end() const noexcept { return place(count_ - 1) + run_bytes_; }
  /// The first run that ends behind byte `at` of the tensor; count() where there is none.
  std::uint64_t first_behind(std::uint64_t at) const noexcept;

 private:
  struct Step {
    std::uint64_t count;
    std::uint64_t bytes;  ///< of the tensor, from one to the next
  };
  std::vector<Step> steps_;  ///< dimensions outside of a run, the innermost first
  std::uint64_t run_bytes_ = 0;
  std::uint64_t count_ = 1;
  std::uint64_t first_ = 0;
};

}  // namespace penstock::format::dcp
