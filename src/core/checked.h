#pragma once

// Arithmetic on sizes that come from files. Every result is either exact or an Error.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/error.h"

namespace penstock::core {

template <std::integral T>
constexpr std::optional<T> try_add(T a, T b) noexcept {
  T out{};
  return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional<T>(out);
}

template <std::integral T>
constexpr std::optional<T> try_mul(T a, T b) noexcept {
  T out{};
  return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional<T>(out);
}

/// Throws kCorrupt ("WHAT does not fit in 64 bits") on overflow.
[[noreturn]] void throw_overflow(std::string_view what);

template <std::integral T>
constexpr T checked_add(T a, T b, std::string_view what) {
  if (auto sum = try_add(a, b)) return *sum;
  throw_overflow(what);
}

template <std::integral T>
constexpr T checked_mul(T a, T b, std::string_view what) {
  if (auto product = try_mul(a, b)) return *product;
  throw_overflow(what);
}

/// True when [offset, offset + length) lies inside [0, size). Cannot wrap.
constexpr bool range_fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) noexcept {
  return offset <= size && length <= size - offset;
}

}  // namespace penstock::core
