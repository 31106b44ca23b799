#pragma once

// Conversions between the types that C++ has, one element at a time: defined for every value, where the language leaves
// them open, as PyTorch's build for x86 answers them.

#include <cstdint>
#include <limits>
#include <type_traits>

namespace penstock::ops {

/// A bool as stored: any byte but 0 is true.
struct Bool {
  std::uint8_t bits;
};

/// Truncates; what does not fit (NaN too) becomes the smallest value of Int, int32_t or int64_t.
template <class Int, class Real>
constexpr Int truncate(Real value) noexcept {
  constexpr Real low = static_cast<Real>(std::numeric_limits<Int>::min());
  // Choosing before converting keeps the loop free of branches.
  const Real inside = value >= low && value < -low ? value : low;
  return static_cast<Int>(inside);
}

template <class Real>
constexpr std::uint64_t truncate_unsigned(Real value) noexcept {
  constexpr Real half = static_cast<Real>(std::uint64_t{1} << 63);
  if (value >= half) return static_cast<std::uint64_t>(truncate<std::int64_t>(value - half)) ^ std::uint64_t{1} << 63;
  return static_cast<std::uint64_t>(truncate<std::int64_t>(value));
}

template <class To, class From>
constexpr To machine_convert(From value) noexcept {
  if constexpr (std::is_same_v<From, Bool>) {
    return machine_convert<To>(static_cast<std::uint8_t>(value.bits != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<std::uint8_t>(value != From{0})};
  } else if constexpr (std::is_integral_v<From> || std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, std::uint64_t>) {
    return truncate_unsigned(value);
  } else if constexpr (std::is_same_v<To, std::int64_t> || std::is_same_v<To, std::uint32_t> ||
                       (std::is_same_v<To, std::uint8_t> && std::is_same_v<From, double>)) {
    return static_cast<To>(truncate<std::int64_t>(value));
  } else {
    // For uint8 too: the low eight bits of a float beyond 31 bits are zero either way.
    return static_cast<To>(truncate<std::int32_t>(value));
  }
}

}  // namespace penstock::ops
