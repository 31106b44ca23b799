// Elements become double, a block of them at a time, and each block is looked at three times while the first-level
// cache holds it: for its range, sum and zeros, then for the squares of the distances from its mean, then for the
// histogram. Blocks are put together by Chan's formula, so that nothing cancels out. A block with a NaN, an infinity or
// numbers whose squares double cannot hold, and the last block, go the slow way, one number at a time in long double.
//
// Types that float holds exactly, which most large tensors have, go a shorter way first: range and places eight at a
// time in float, and the sums, in double, of distances from the mean of the block before, so that two looks are enough.
// A third counts zeros and denormals, in those blocks whose least absolute value says that there are some. Where the
// sums would cancel out, the block goes the way of doubles.

#include "archive/inspect/statistics.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "archive/inspect/block_loops.h"
#include "archive/inspect/numbers.h"

namespace penstock::archive {

static_assert(LDBL_MAX_EXP > 2 * DBL_MAX_EXP, "squares of doubles have to fit");

/// Counts of the histogram's intervals that are not in it yet. Two numbers are counted by one step, at the place of the
/// pair of their intervals, because a step waits for memory and not for arithmetic. Several tables, or equal pairs one
/// behind the other would wait for each other.
struct Statistics::Counts {
  static constexpr std::size_t kTables = 2;
  static constexpr std::size_t kBins = Histogram::kBins;
  static constexpr std::size_t kPairsInTable = kBlock / 2 / kTables;
  static constexpr std::size_t kMostBlocks = std::numeric_limits<std::uint16_t>::max() / kPairsInTable;

  using Table = std::array<std::uint16_t, kBins * kBins>;  ///< by the interval of the second, then of the first
  std::array<Table, kTables> tables{};
  std::array<std::uint64_t, kBins> single{};
  std::size_t blocks = 0;  ///< in the tables
  double middle = 0;       ///< the mean of the last block of floats

  void count_pairs(const std::uint16_t* pairs) {
    if (blocks == kMostBlocks) split_pairs();
    for (std::size_t i = 0; i < kBlock / 2; i += kTables) {
      for (std::size_t k = 0; k < kTables; ++k) ++tables[k][pairs[i + k]];
    }
    ++blocks;
  }

  void split_pairs() {
    if (blocks == 0) return;
    std::array<std::uint32_t, kBins> of_first{};
    for (Table& table : tables) {
      for (std::size_t second = 0; second < kBins; ++second) {
        std::uint32_t of_second = 0;
        for (std::size_t first = 0; first < kBins; ++first) {
          const std::uint32_t count = table[second * kBins + first];
          of_first[first] += count;
          of_second += count;
        }
        single[second] += of_second;
      }
      table.fill(0);
    }
    for (std::size_t first = 0; first < kBins; ++first) single[first] += of_first[first];
    blocks = 0;
  }

  void give_to(Histogram& histogram) {
    split_pairs();
    for (std::size_t i = 0; i < kBins; ++i) histogram.add(i, single[i]);
    single.fill(0);
  }
};

namespace {

/// Whether place_floats is exact: neither the factor nor a product with it overflows, and places have room.
bool suits_floats(Histogram::Scale scale) {
  constexpr std::int64_t kMostPlace = std::int64_t{1} << 21;
  return scale.scale >= 0x1p-100 && scale.scale <= 0x1p100 && std::abs(scale.first) < kMostPlace;
}

// Between these, squares of a block's distances lose nothing in double.
constexpr double kLeastRange = 1e-140;
constexpr double kMostRange = 1e150;
// Squares of distances from another point than the mean lose as many digits as they are larger.
constexpr double kMostCancelled = 1e4;

/// The least positive number of a type that has all of the type's digits; of integers, 1. float8_e8m0fnu has no others.
double least_normal(const DType& dtype) {
  switch (dtype.code()) {
    case DType::Code::kFloat64:
    case DType::Code::kComplex128:
      return DBL_MIN;
    case DType::Code::kFloat32:
    case DType::Code::kBFloat16:
    case DType::Code::kComplex64:
      return FLT_MIN;
    case DType::Code::kFloat16:
    case DType::Code::kComplex32:
    case DType::Code::kFloat8E5M2:
      return 0x1p-14;
    case DType::Code::kFloat8E5M2FNUZ:
      return 0x1p-15;
    case DType::Code::kFloat8E4M3FN:
      return 0x1p-6;
    case DType::Code::kFloat8E4M3FNUZ:
      return 0x1p-7;
    case DType::Code::kFloat8E8M0FNU:
      return 0;
    default:
      return 1;
  }
}

/// Absolute values; a NaN where a part is one, though hypot prefers infinity.
void absolute_values(const DType& dtype, const std::byte* from, double* to, std::size_t count) {
  std::array<double, kBlock> imaginary;
  to_complex(dtype, from, to, imaginary.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_nan = std::isnan(to[i]) || std::isnan(imaginary[i]);
    const bool is_finite = std::isfinite(to[i]) && std::isfinite(imaginary[i]);
    const double absolute = std::hypot(to[i], imaginary[i]);
    to[i] = is_nan ? std::nan("") : is_finite ? std::min(absolute, DBL_MAX) : absolute;
  }
}

}  // namespace

Statistics::Statistics(const DType& dtype) : dtype_(dtype), normal_(least_normal(dtype)) {}

double Statistics::deviation() const noexcept {
  if (finite_ == 0) return 0;
  return static_cast<double>(std::sqrt(squares_ / static_cast<long double>(finite_)));
}

void Statistics::add(std::span<const std::byte> elements) {
  const std::size_t itemsize = dtype_.itemsize();
  if (itemsize == 0) return;
  const std::size_t count = elements.size() / itemsize;
  count_ += static_cast<std::int64_t>(count);
  if (!dtype_.is_numeric()) return;
  add_exactly(elements);
  Counts counts;
  alignas(32) std::array<float, kBlock> floats;
  alignas(32) std::array<double, kBlock> values;
  const bool is_narrow = fits_float(dtype_);
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t now = std::min(kBlock, count - done);
    const std::byte* const from = elements.data() + done * itemsize;
    if (is_narrow && now == kBlock && add_floats(as_floats(dtype_, from, floats), counts)) continue;
    if (dtype_.is_complex()) {
      absolute_values(dtype_, from, values.data(), now);
    } else {
      to_doubles(dtype_, from, values.data(), now);
    }
    if (now < kBlock || !add_block(values.data(), counts)) add_slowly(values.data(), now, counts);
  }
  counts.give_to(histogram_);
}

void Statistics::add_exactly(std::span<const std::byte> elements) {
  const auto widen = [&]<class Int>(Int) {
    Int least = finite_ == 0 ? std::numeric_limits<Int>::max() : static_cast<Int>(least_);
    Int greatest = finite_ == 0 ? std::numeric_limits<Int>::min() : static_cast<Int>(greatest_);
    for (std::size_t at = 0; at < elements.size(); at += sizeof(Int)) {
      Int value;
      std::memcpy(&value, elements.data() + at, sizeof value);
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    least_ = static_cast<std::int64_t>(least);
    greatest_ = static_cast<std::int64_t>(greatest);
  };
  if (dtype_ == DType::int64) widen(std::int64_t{});
  if (dtype_ == DType::uint64) widen(std::uint64_t{});
}

void Statistics::cover(double low, double high, Counts& counts) {
  if (histogram_.covers(low, high)) return;
  counts.give_to(histogram_);
  histogram_.cover(low, high);
}

void Statistics::extend(double low, double high) {
  min_ = finite_ == 0 ? low : std::min(min_, low);
  max_ = finite_ == 0 ? high : std::max(max_, high);
  const bool is_exact = dtype_ == DType::int64 || dtype_ == DType::uint64;
  if (is_exact || !(dtype_.is_integer() || dtype_ == DType::boolean)) return;
  least_ = static_cast<std::int64_t>(min_);
  greatest_ = static_cast<std::int64_t>(max_);
}

/// Chan, Golub, LeVeque: "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).
void Statistics::combine(std::int64_t count, long double mean, long double squares) {
  const auto ours = static_cast<long double>(finite_);
  const auto theirs = static_cast<long double>(count);
  const long double distance = mean - mean_;
  mean_ += distance * (theirs / (ours + theirs));
  squares_ += squares + distance * distance * (ours * theirs / (ours + theirs));
  finite_ += count;
}

bool Statistics::add_block(const double* values, Counts& counts) {
  const BlockLoops& loops = block_loops();
  DoubleScan scan;
  loops.scan_doubles(values, normal_, scan);
  const double range = scan.high - scan.low;
  const bool suits = std::isfinite(scan.sum) && (range == 0 || (range > kLeastRange && range < kMostRange));
  if (!suits) return false;
  const double mean = range == 0 ? scan.low : scan.sum / static_cast<double>(kBlock);
  double squares = 0;
  if (range != 0) loops.square_doubles(values, mean, squares);
  extend(scan.low, scan.high);
  cover(scan.low, scan.high, counts);
  const Histogram::Scale scale = histogram_.scale();
  if (range == 0) {
    counts.single[scale.bin_of(scan.low)] += kBlock;
  } else {
    alignas(32) std::array<std::uint16_t, kBlock / 2> pairs;
    loops.place_doubles(values, scale, pairs.data());
    counts.count_pairs(pairs.data());
  }
  zeros_ += scan.zeros;
  denormals_ += scan.small - scan.zeros;
  combine(static_cast<std::int64_t>(kBlock), mean, squares);
  return true;
}

bool Statistics::add_floats(const std::byte* values, Counts& counts) {
  const BlockLoops& loops = block_loops();
  FloatScan scan;
  const double middle = counts.middle;
  loops.scan_floats(values, middle, scan);
  constexpr auto kCount = static_cast<double>(kBlock);
  const double distance = scan.sum / kCount;
  counts.middle = std::isfinite(distance) ? middle + distance : 0;
  const double squares = scan.squares - distance * scan.sum;
  const bool is_constant = scan.low == scan.high;
  const bool suits = std::isfinite(scan.sum) && (is_constant || squares * kMostCancelled > scan.squares);
  if (!suits) return false;
  cover(scan.low, scan.high, counts);
  const Histogram::Scale scale = histogram_.scale();
  if (!suits_floats(scale)) return false;
  if (is_constant) {
    counts.single[scale.bin_of(scan.low)] += kBlock;
  } else {
    alignas(32) std::array<std::uint16_t, kBlock / 2> pairs;
    loops.place_floats(values, scale, pairs.data());
    counts.count_pairs(pairs.data());
  }
  extend(scan.low, scan.high);
  if (const auto normal = static_cast<float>(normal_); scan.nearest < normal) {
    SmallCounts found;
    loops.count_small(values, normal, found);
    zeros_ += found.zeros;
    denormals_ += found.small - found.zeros;
  }
  combine(static_cast<std::int64_t>(kBlock), is_constant ? scan.low : middle + distance, is_constant ? 0 : squares);
  return true;
}

void Statistics::add_slowly(const double* values, std::size_t count, Counts& counts) {
  std::array<double, kBlock> finite;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) {
      finite[kept++] = values[i];
    } else {
      ++(std::isnan(values[i]) ? nans_ : values[i] > 0 ? positive_ : negative_);
    }
  }
  if (kept == 0) return;
  const auto [low, high] = std::minmax_element(finite.begin(), finite.begin() + kept);
  extend(*low, *high);
  cover(*low, *high, counts);
  const Histogram::Scale scale = histogram_.scale();
  long double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += finite[i];
  const long double mean = sum / static_cast<long double>(kept);
  long double squares = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    squares += (finite[i] - mean) * (finite[i] - mean);
    zeros_ += finite[i] == 0 ? 1 : 0;
    denormals_ += finite[i] != 0 && std::abs(finite[i]) < normal_ ? 1 : 0;
    ++counts.single[scale.bin_of(finite[i])];
  }
  combine(static_cast<std::int64_t>(kept), mean, squares);
}

void Statistics::merge(const Statistics& other) {
  count_ += other.count_;
  zeros_ += other.zeros_;
  denormals_ += other.denormals_;
  nans_ += other.nans_;
  positive_ += other.positive_;
  negative_ += other.negative_;
  if (other.finite_ == 0) return;
  const bool is_first = finite_ == 0;
  min_ = is_first ? other.min_ : std::min(min_, other.min_);
  max_ = is_first ? other.max_ : std::max(max_, other.max_);
  const auto less = [this](std::int64_t a, std::int64_t b) {
    return dtype_ == DType::uint64 ? static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b) : a < b;
  };
  if (is_first || less(other.least_, least_)) least_ = other.least_;
  if (is_first || less(greatest_, other.greatest_)) greatest_ = other.greatest_;
  combine(other.finite_, other.mean_, other.squares_);
  histogram_.merge(other.histogram_);
}

}  // namespace penstock::archive
