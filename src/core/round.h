#pragma once

// Sizes and addresses as multiples of a unit, and the size of a page of memory.

#include <unistd.h>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace penstock::core {

/// The largest multiple of `unit` that is at most `value`. `unit` > 0.
template <std::unsigned_integral T>
constexpr T round_down(T value, std::type_identity_t<T> unit) noexcept {
  return value - value % unit;
}

/// The smallest multiple of `unit` that is at least `value`, or `value` itself where T cannot hold that multiple.
/// `unit` > 0.
template <std::unsigned_integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) noexcept {
  const T past = value % unit;
  if (past == 0) return value;
  const T up = value + (unit - past);
  return up < value ? value : up;
}

/// Bytes of a page of this process's memory: 4,096 on x86-64, up to 65,536 on 64-bit ARM.
inline std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace penstock::core
