#pragma once

// `penstock show`: a tensor that is larger than the screen as means of blocks, read once in little memory.

#include <cstdint>
#include <limits>
#include <vector>

#include "cli/show/number_source.h"
#include "cli/show/reading.h"

namespace penstock::cli {

/// What all elements that were read are.
struct Seen {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  std::uint64_t nans = 0;
  std::uint64_t positive_infinities = 0;
  std::uint64_t negative_infinities = 0;

  bool any_finite() const noexcept { return least <= greatest; }
  void add(double number) noexcept;
};

/// A picture as means of blocks of elements.
struct Picture {
  enum class Mark : std::uint8_t { kNone, kInfinite, kNaN };

  std::size_t width = 0;
  std::size_t height = 0;
  std::size_t channels = 1;
  std::vector<double> means;  ///< by row, pixel and channel; of finite elements, less the source's base
  std::vector<Mark> marks;    ///< by row and pixel: whether any element of the block is NaN or else infinite
};

/// Reads the next picture, of height * width blocks, neither more than `reading` has rows and columns. Block i of n
/// over m elements has those from i * m / n, rounded up.
Picture read_picture(NumberSource& source, const Reading& reading, std::size_t width, std::size_t height, Seen& seen);

}  // namespace penstock::cli
