#pragma once

// What is done with each block of kBlock numbers: the inner loops of statistics and differences. They are compiled
// twice from one source (block_loops_each.h), for all processors and for those with AVX2; both give the same values.

#include <cstddef>
#include <cstdint>

#include "archive/inspect/histogram.h"
#include "archive/inspect/numbers.h"

namespace penstock::archive {

struct DoubleScan {
  double low = 0;
  double high = 0;
  double sum = 0;
  std::int64_t small = 0;  ///< absolute values below `normal`, zeros among them
  std::int64_t zeros = 0;
};

struct FloatScan {
  float low = 0;
  float high = 0;
  float nearest = 0;   ///< the least absolute value
  double sum = 0;      ///< of distances from the middle
  double squares = 0;  ///< of the same
};

/// Absolute values below the least normal number, and the zeros among them.
struct SmallCounts {
  std::int64_t small = 0;
  std::int64_t zeros = 0;
};

struct DifferenceSums {
  double max_absolute = 0;
  double sum_absolute = 0;
  double max_relative = 0;
  double sum_relative = 0;
  std::int64_t different = 0;
  std::int64_t zeros_of_b = 0;
};

struct BlockLoops {
  /// Without a NaN or an infinity the sum is finite, unless it overflows.
  void (*scan_doubles)(const double* values, double normal, DoubleScan& out);
  /// The squares of the distances from `mean`.
  void (*square_doubles)(const double* values, double mean, double& out);
  /// floor(x * scale) - first is the interval of a number. Of each number of the first half of the block: its interval,
  /// plus Histogram::kBins times that of the number at the same place of the second half.
  void (*place_doubles)(const double* values, Histogram::Scale scale, std::uint16_t* pairs);
  /// As scan_doubles, and the squares in the same pass. `values` need not be aligned.
  void (*scan_floats)(const std::byte* values, double middle, FloatScan& out);
  void (*count_small)(const std::byte* floats, float normal, SmallCounts& out);
  /// As place_doubles, where the places and what they are counted from are whole numbers in float.
  void (*place_floats)(const std::byte* floats, Histogram::Scale scale, std::uint16_t* pairs);
  /// A NaN or an infinity, or an overflow, makes a sum that is not finite.
  void (*compare)(const double* a, const double* b, double rtol, double atol, DifferenceSums& out);
  /// As compare, of floats, which need not be aligned. A zero of b makes a sum that is not finite, too. In place of the
  /// greatest relative difference, which stays 0, it gives whether one is larger than `known`.
  bool (*compare_floats)(const std::byte* a, const std::byte* b, double rtol, double atol, double known,
                         DifferenceSums& out);
};

extern const BlockLoops kBaselineLoops;
extern const BlockLoops kAvx2Loops;  ///< the same as the other where the compiler's target has no AVX2

/// Those that suit the processor.
const BlockLoops& block_loops() noexcept;

}  // namespace penstock::archive
