#pragma once

// How the elements of two tensors differ: exact counts and the places of the largest differences, computed part by part
// (parts.h) and put together in order.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "penstock/dtype.h"

namespace penstock::archive {

struct DifferenceSums;

/// Which numbers count as equal: those with |a - b| <= atol + rtol * |b|, NumPy's isclose. Infinities are equal to
/// themselves alone.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
  bool nan_equal = true;  ///< whether two NaNs are equal, whatever their bits

  /// Whether equal bytes are equal values of any type.
  bool takes_bytes() const noexcept { return nan_equal; }
};

/// Whether two numbers are equal.
bool is_close(double a, double b, const Tolerance& tolerance) noexcept;

/// How the elements of two tensors of one shape differ. Numbers are compared as numbers, exactly, whatever their types:
/// bool and integers of any width beside floats too. Elements without numeric meaning (text, dates, structures, packed
/// types) are compared byte by byte, and their types must agree.
class Difference {
 public:
  Difference(const DType& a, const DType& b, const Tolerance& tolerance);

  /// Whether the two types can be compared.
  static bool comparable(const DType& a, const DType& b) noexcept;

  /// Elements from number `first` on, in C order; as many of both.
  void add(std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b);
  /// `other` is about elements behind these.
  void merge(const Difference& other);

  bool is_numeric() const noexcept { return way_ != Way::kBytes; }
  std::int64_t count() const noexcept { return count_; }
  /// Elements that are not equal.
  std::int64_t different() const noexcept { return different_; }
  /// The number of the first of them in C order, or -1, and its bytes.
  std::int64_t first() const noexcept { return first_; }
  const std::string& first_of_a() const noexcept { return first_of_a_; }
  const std::string& first_of_b() const noexcept { return first_of_b_; }
  /// Different elements of which one is a NaN or an infinity; they have no part in what follows.
  std::int64_t not_finite() const noexcept { return not_finite_; }
  /// Elements where b is 0 and a is not, which have no relative difference.
  std::int64_t zeros_of_b() const noexcept { return zeros_of_b_; }
  /// |a - b|, exact for integers, and |a - b| / |b|; equal elements, tolerated ones too, count with what they differ
  /// by.
  long double max_absolute() const noexcept { return max_absolute_; }
  long double mean_absolute() const noexcept;
  long double max_relative() const noexcept { return max_relative_; }
  long double mean_relative() const noexcept;

 private:
  enum class Way : std::uint8_t {
    kFloats,   ///< both fit float
    kDoubles,  ///< both fit double
    kWide,     ///< integers of 64 bits among them: long double
    kComplex,
    kBytes,
  };
  struct Block;

  static Way way_of(const DType& a, const DType& b) noexcept;
  void add_block(std::int64_t first, std::span<const std::byte> a, std::span<const std::byte> b, std::size_t count);
  /// False where the block has to go the way of doubles.
  bool add_floats(const Block& block);
  void add_sums(const DifferenceSums& sums);
  void add_doubles(std::int64_t first, const double* a, const double* b, std::size_t count, const Block& block);
  void add_complex(std::int64_t first, const Block& block);
  void add_wide(std::int64_t first, const Block& block);
  void add_bytes(std::int64_t first, const Block& block);
  void add_pair(long double difference, long double of_b, bool equal, std::int64_t number, std::size_t at,
                const Block& block);
  void add_not_finite(bool equal, std::int64_t number, std::size_t at, const Block& block);
  void note_first(std::int64_t number, std::size_t at, const Block& block);

  DType a_;
  DType b_;
  Tolerance tolerance_;
  Way way_;
  std::size_t blocks_to_skip_ = 0;  ///< that do not go the way of floats
  std::int64_t count_ = 0;
  std::int64_t different_ = 0;
  std::int64_t first_ = -1;
  std::string first_of_a_;
  std::string first_of_b_;
  std::int64_t not_finite_ = 0;
  std::int64_t zeros_of_b_ = 0;
  // Wider than double: differences of doubles do not overflow, those of integers of 64 bits are exact.
  long double max_absolute_ = 0;
  long double sum_absolute_ = 0;
  long double max_relative_ = 0;
  long double sum_relative_ = 0;
};

}  // namespace penstock::archive
