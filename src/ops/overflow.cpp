// A value fits when it lies in the target's range. Integers are compared as integers, because a double cannot hold all
// 64 bits. Floats are compared as doubles, which hold the limits of an integer type exactly.

#include "ops/overflow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/format.h"
#include "ops/convert.h"
#include "ops/integer_type.h"

namespace penstock::ops {
namespace {

using enum DType::Code;

/// The numbers that an integer type has.
struct IntegerRange {
  bool integer = false;
  std::int64_t first = 0;
  std::uint64_t last = 0;
};

IntegerRange range_of(DType::Code type) noexcept {
  if (!DType(type).is_integer()) return {};
  return with_integer_type(type, [](auto integer) {
    using Limits = std::numeric_limits<decltype(integer)>;
    return IntegerRange{true, static_cast<std::int64_t>(Limits::min()), static_cast<std::uint64_t>(Limits::max())};
  });
}

template <class T>
bool fits(T value, const IntegerRange& range) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    // A conversion cuts off the fraction. `last` + 1 is a power of two, so the comparison is exact.
    const auto whole = std::trunc(static_cast<double>(value));
    return whole >= static_cast<double>(range.first) && whole < std::ldexp(static_cast<double>(range.last / 2 + 1), 1);
  } else {
    return std::cmp_greater_equal(value, range.first) && std::cmp_less_equal(value, range.last);
  }
}

template <class T>
std::size_t find_outside(const std::byte* elements, const IntegerRange& range, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(&value, elements + i * sizeof(T), sizeof(T));
    if (!fits(value, range)) return i;
  }
  return count;
}

/// The largest value that rounds to the greatest number of a type which makes the greatest number of all above it, too.
double greatest_rounded(DType::Code type) noexcept {
  return type == kFloat8E4M3FN ? 464.0 : std::numeric_limits<double>::infinity();
}

/// Whether a number has become infinite, or NaN in a type without infinities, or one of the other sign, or the greatest
/// number of a type that has no other for it.
bool lost(double before, double after, double greatest) noexcept {
  if (std::isnan(before)) return false;
  if (std::isinf(before)) return after != before;
  return !std::isfinite(after) || std::abs(before) > greatest || (before < 0 && after > 0);
}

constexpr std::size_t kCheckedAtOnce = 256;

/// The elements as doubles. A complex element becomes a pair: its real part, then its imaginary part.
void as_doubles(DType::Code type, const std::byte* elements, double* to, std::size_t count) {
  const bool complex = DType(type).is_complex();
  convert(type, elements, complex ? kComplex128 : kFloat64, reinterpret_cast<std::byte*>(to), count);
}

}  // namespace

std::size_t find_overflow(DType::Code from, const std::byte* elements, DType::Code to, std::size_t count) {
  const DType source(from);
  const DType target(to);
  if (from == to || from == kBool || to == kBool) return count;
  const IntegerRange range = range_of(to);
  if (range.integer && source.is_integer()) {
    return with_integer_type(from,
                             [&](auto integer) { return find_outside<decltype(integer)>(elements, range, count); });
  }
  const std::size_t parts = source.is_complex() ? 2 : 1;
  for (std::size_t first = 0; first < count; first += kCheckedAtOnce) {
    const std::size_t here = std::min(kCheckedAtOnce, count - first);
    const std::byte* const chunk = elements + first * source.itemsize();
    double before[2 * kCheckedAtOnce];
    as_doubles(from, chunk, before, here);
    if (range.integer) {
      for (std::size_t i = 0; i < here; ++i) {
        if (!fits(before[i * parts], range) || (parts == 2 && before[2 * i + 1] != 0)) return first + i;
      }
      continue;
    }
    std::byte converted[16 * kCheckedAtOnce];
    double after[2 * kCheckedAtOnce];
    convert(from, chunk, to, converted, here);
    as_doubles(to, converted, after, here);
    const std::size_t kept = target.is_complex() ? 2 : 1;
    const double greatest = greatest_rounded(to);
    for (std::size_t i = 0; i < here; ++i) {
      if (lost(before[i * parts], after[i * kept], greatest)) return first + i;
      if (parts == 2 && kept == 2 && lost(before[2 * i + 1], after[2 * i + 1], greatest)) return first + i;
      if (parts == 2 && kept == 1 && before[2 * i + 1] != 0) return first + i;
    }
  }
  return count;
}

double first_part(DType::Code type, const std::byte* element) noexcept {
  double parts[2] = {};
  as_doubles(type, element, parts, 1);
  return parts[0];
}

std::string overflow_message(DType::Code from, double value, DType::Code to) {
  if (DType(from).is_complex()) {
    return core::format(
        "a strict cast from {} to {} found a number with the real part {}, which {} cannot hold as a whole; cast "
        "without strict",
        DType(from).name(), DType(to).name(), value, DType(to).name());
  }
  return core::format(
      "a strict cast from {} to {} found the value {}, which {} cannot hold; clamp it first, or cast without strict",
      DType(from).name(), DType(to).name(), value, DType(to).name());
}

}  // namespace penstock::ops
