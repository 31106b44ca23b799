// Pieces with equal bytes are equal and cost one memcmp. Else elements become double, a block at a time. A block of
// finite numbers is compared four at a time; one with a NaN, an infinity or a difference that overflows goes the slow
// way, one number at a time in long double. That holds every integer of 64 bits and every difference of two of them.
//
// Types that float holds exactly go a shorter way first: the same sums in double with a quarter of the divisions, and
// without the greatest relative difference, since few blocks have a greater one than those before them. A block that
// has, or that has the first difference or a zero of b, goes the way of doubles.

#include "archive/inspect/difference.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "archive/inspect/block_loops.h"
#include "archive/inspect/numbers.h"

namespace penstock::archive {

// Where one block has a zero of b, its neighbours are likely to.
constexpr std::size_t kSkipped = 15;

static_assert(LDBL_MANT_DIG >= 64 && LDBL_MAX_EXP > DBL_MAX_EXP, "integers of 64 bits have to fit");

/// A block of elements of both tensors, as they came.
struct Difference::Block {
  std::span<const std::byte> a;
  std::span<const std::byte> b;
  std::size_t count;
};

namespace {

/// Real elements as long double, which holds each of them exactly.
void to_wide(const DType& dtype, const std::byte* from, long double* to, std::size_t count) {
  const auto each = [&]<class Int>(Int) {
    for (std::size_t i = 0; i < count; ++i) {
      Int value;
      std::memcpy(&value, from + i * sizeof(Int), sizeof value);
      to[i] = static_cast<long double>(value);
    }
  };
  if (dtype == DType::int64) return each(std::int64_t{});
  if (dtype == DType::uint64) return each(std::uint64_t{});
  std::array<double, kBlock> narrow;
  to_doubles(dtype, from, narrow.data(), count);
  std::copy(narrow.begin(), narrow.begin() + static_cast<std::ptrdiff_t>(count), to);
}

void to_parts(const DType& dtype, const std::byte* from, double* real, double* imaginary, std::size_t count) {
  if (dtype.is_complex()) return to_complex(dtype, from, real, imaginary, count);
  to_doubles(dtype, from, real, count);
  std::fill(imaginary, imaginary + count, 0.0);
}

}  // namespace

bool is_close(double a, double b, const Tolerance& tolerance) noexcept {
  if (a == b) return true;
  if (std::isnan(a) && std::isnan(b)) return tolerance.nan_equal;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= tolerance.atol + tolerance.rtol * std::fabs(b);
}

Difference::Difference(const DType& a, const DType& b, const Tolerance& tolerance)
    : a_(a), b_(b), tolerance_(tolerance), way_(way_of(a, b)) {}

Difference::Way Difference::way_of(const DType& a, const DType& b) noexcept {
  if (!a.is_numeric() || !b.is_numeric()) return Way::kBytes;
  if (a.is_complex() || b.is_complex()) return Way::kComplex;
  if (fits_float(a) && fits_float(b)) return Way::kFloats;
  return fits_double(a) && fits_double(b) ? Way::kDoubles : Way::kWide;
}

bool Difference::comparable(const DType& a, const DType& b) noexcept {
  return a == b || (a.is_numeric() && b.is_numeric());
}

long double Difference::mean_absolute() const noexcept {
  const std::int64_t counted = count_ - not_finite_;
  return counted == 0 ? 0 : sum_absolute_ / static_cast<long double>(counted);
}

long double Difference::mean_relative() const noexcept {
  const std::int64_t counted = count_ - not_finite_ - zeros_of_b_;
  return counted == 0 ? 0 : sum_relative_ / static_cast<long double>(counted);
}

void Difference::add(std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a_.itemsize() == 0) return;
  const std::size_t count = a.size() / a_.itemsize();
  const bool same_type = a_ == b_;
  if (same_type && tolerance_.takes_bytes() && std::memcmp(a.data(), b.data(), a.size()) == 0) {
    count_ += static_cast<std::int64_t>(count);
    return;
  }
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t now = std::min(kBlock, count - done);
    add_block(first + static_cast<std::int64_t>(done), a.subspan(done * a_.itemsize(), now * a_.itemsize()),
              b.subspan(done * b_.itemsize(), now * b_.itemsize()), now);
  }
}

void Difference::add_block(std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b,
                           std::size_t count) {
  count_ += static_cast<std::int64_t>(count);
  const Block block{a, b, count};
  if (way_ == Way::kBytes) return add_bytes(first, block);
  if (way_ == Way::kComplex) return add_complex(first, block);
  if (way_ == Way::kWide) return add_wide(first, block);
  if (way_ == Way::kFloats && count == kBlock && add_floats(block)) return;
  alignas(32) std::array<double, kBlock> of_a;
  alignas(32) std::array<double, kBlock> of_b;
  to_doubles(a_, a.data(), of_a.data(), count);
  to_doubles(b_, b.data(), of_b.data(), count);
  add_doubles(first, of_a.data(), of_b.data(), count, block);
}

bool Difference::add_floats(const Block& block) {
  if (blocks_to_skip_ > 0) {
    --blocks_to_skip_;
    return false;
  }
  alignas(32) std::array<float, kBlock> of_a;
  alignas(32) std::array<float, kBlock> of_b;
  DifferenceSums sums;
  const bool is_greater =
      block_loops().compare_floats(as_floats(a_, block.a.data(), of_a), as_floats(b_, block.b.data(), of_b),
                                   tolerance_.rtol, tolerance_.atol, static_cast<double>(max_relative_), sums);
  if (!std::isfinite(sums.sum_absolute) || !std::isfinite(sums.sum_relative)) {
    blocks_to_skip_ = kSkipped;
    return false;
  }
  const bool is_first = first_ < 0 && sums.different > 0;
  if (is_first || is_greater) return false;
  add_sums(sums);
  return true;
}

void Difference::add_sums(const DifferenceSums& sums) {
  max_absolute_ = std::max<long double>(max_absolute_, sums.max_absolute);
  sum_absolute_ += sums.sum_absolute;
  max_relative_ = std::max<long double>(max_relative_, sums.max_relative);
  sum_relative_ += sums.sum_relative;
  different_ += sums.different;
  zeros_of_b_ += sums.zeros_of_b;
}

void Difference::add_doubles(std::int64_t first, const double* a, const double* b, std::size_t count,
                             const Block& block) {
  DifferenceSums sums;
  if (count == kBlock) {
    block_loops().compare(a, b, tolerance_.rtol, tolerance_.atol, sums);
  }
  const bool suits = count == kBlock && std::isfinite(sums.sum_absolute) && std::isfinite(sums.sum_relative);
  if (!suits) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool equal = is_close(a[i], b[i], tolerance_);
      const auto number = first + static_cast<std::int64_t>(i);
      if (std::isfinite(a[i]) && std::isfinite(b[i])) {
        add_pair(std::fabs(static_cast<long double>(a[i]) - b[i]), b[i], equal, number, i, block);
      } else {
        add_not_finite(equal, number, i, block);
      }
    }
    return;
  }
  add_sums(sums);
  if (first_ >= 0 || sums.different == 0) return;
  std::size_t at = 0;
  while (is_close(a[at], b[at], tolerance_)) ++at;
  note_first(first + static_cast<std::int64_t>(at), at, block);
}

void Difference::add_wide(std::int64_t first, const Block& block) {
  std::array<long double, kBlock> a;
  std::array<long double, kBlock> b;
  to_wide(a_, block.a.data(), a.data(), block.count);
  to_wide(b_, block.b.data(), b.data(), block.count);
  for (std::size_t i = 0; i < block.count; ++i) {
    const auto number = first + static_cast<std::int64_t>(i);
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      add_not_finite(false, number, i, block);
      continue;
    }
    const long double difference = std::fabs(a[i] - b[i]);
    const long double tolerated = tolerance_.atol + tolerance_.rtol * std::fabs(b[i]);
    add_pair(difference, b[i], difference <= tolerated, number, i, block);
  }
}

/// As NumPy's isclose: a complex number is a NaN where a part is one, and differences are absolute values.
void Difference::add_complex(std::int64_t first, const Block& block) {
  std::array<std::array<double, kBlock>, 4> parts;
  to_parts(a_, block.a.data(), parts[0].data(), parts[1].data(), block.count);
  to_parts(b_, block.b.data(), parts[2].data(), parts[3].data(), block.count);
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::array<double, 4> each{parts[0][i], parts[1][i], parts[2][i], parts[3][i]};
    const auto number = first + static_cast<std::int64_t>(i);
    if (std::all_of(each.begin(), each.end(), [](double part) { return std::isfinite(part); })) {
      const long double real = static_cast<long double>(each[0]) - each[2];
      const long double imaginary = static_cast<long double>(each[1]) - each[3];
      const long double difference = std::hypot(real, imaginary);
      const long double of_b = std::hypot(static_cast<long double>(each[2]), static_cast<long double>(each[3]));
      add_pair(difference, of_b, difference <= tolerance_.atol + tolerance_.rtol * of_b, number, i, block);
      continue;
    }
    const bool a_nan = std::isnan(each[0]) || std::isnan(each[1]);
    const bool b_nan = std::isnan(each[2]) || std::isnan(each[3]);
    const bool same = each[0] == each[2] && each[1] == each[3];
    add_not_finite(a_nan && b_nan ? tolerance_.nan_equal : same, number, i, block);
  }
}

void Difference::add_bytes(std::int64_t first, const Block& block) {
  const std::size_t size = a_.itemsize();
  for (std::size_t i = 0; i < block.count; ++i) {
    if (std::memcmp(block.a.data() + i * size, block.b.data() + i * size, size) == 0) continue;
    ++different_;
    note_first(first + static_cast<std::int64_t>(i), i, block);
  }
}

void Difference::add_pair(long double difference, long double of_b, bool equal, std::int64_t number, std::size_t at,
                          const Block& block) {
  max_absolute_ = std::max(max_absolute_, difference);
  sum_absolute_ += difference;
  if (of_b != 0) {
    const long double relative = difference / std::fabs(of_b);
    max_relative_ = std::max(max_relative_, relative);
    sum_relative_ += relative;
  } else if (difference != 0) {
    ++zeros_of_b_;
  }
  if (equal) return;
  ++different_;
  note_first(number, at, block);
}

void Difference::add_not_finite(bool equal, std::int64_t number, std::size_t at, const Block& block) {
  if (equal) return;
  ++not_finite_;
  ++different_;
  note_first(number, at, block);
}

void Difference::note_first(std::int64_t number, std::size_t at, const Block& block) {
  if (first_ >= 0) return;
  first_ = number;
  const auto text = [at](std::span<const std::byte> bytes, std::size_t size) {
    return std::string(reinterpret_cast<const char*>(bytes.data() + at * size), size);
  };
  first_of_a_ = text(block.a, a_.itemsize());
  first_of_b_ = text(block.b, b_.itemsize());
}

void Difference::merge(const Difference& other) {
  if (first_ < 0) {
    first_ = other.first_;
    first_of_a_ = other.first_of_a_;
    first_of_b_ = other.first_of_b_;
  }
  count_ += other.count_;
  different_ += other.different_;
  not_finite_ += other.not_finite_;
  zeros_of_b_ += other.zeros_of_b_;
  max_absolute_ = std::max(max_absolute_, other.max_absolute_);
  sum_absolute_ += other.sum_absolute_;
  max_relative_ = std::max(max_relative_, other.max_relative_);
  sum_relative_ += other.sum_relative_;
}

}  // namespace penstock::archive
