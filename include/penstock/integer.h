#pragma once

/// Parameters that are a size, a dimension, an index or a count. Whatever is a number converts to std::int64_t: with
/// plain parameters `t.select(0, i - 1)` of an unsigned 0 would be the last row, and `t.select(0, 1.5)` row 1.

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "penstock/standard.h"

namespace penstock {

namespace detail {
/// Integers, but neither bool nor characters.
template <class T>
concept Number = std::integral<T> && sizeof(T) <= sizeof(std::int64_t) && !std::same_as<T, bool> &&
                 !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                 !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;
/// These, and the names of an enumeration that are integers by themselves.
template <class T>
concept IndexLike = Number<T> ||(std::is_enum_v<T>&& std::is_convertible_v<T, std::int64_t>);
[[noreturn]] void throw_no_integer(std::uint64_t value);
}  // namespace detail

/// A parameter that takes any integer as an std::int64_t: `t[i]` with an int or a std::size_t. It takes no bool, no
/// character and no floating-point number, so that `t[1.5]` does not mean row 1. kInvalidArgument for an
/// unsigned number beyond 63 bits, such as `i - 1` of a std::size_t that is 0, which would become -1 and mean the last.
///
/// An option of this type is read as a number, and counts like one: `options.batch_size *= 2`. Where a template wants
/// to know the type, as std::min and `?:` do, `+options.batch_size` is the std::int64_t.
class Integer {
 public:
  /// What it stands for. CLI11 looks here: `app.add_option("--batch-size", options.batch_size)`.
  using value_type = std::int64_t;

  /// 0. Not of `{}`, which is no number.
  constexpr explicit Integer() noexcept = default;
  template <detail::IndexLike T>
  constexpr Integer(T value)  // NOLINT(google-explicit-constructor): it stands for an integer
      : value_(static_cast<std::int64_t>(value)) {
    if constexpr (std::is_convertible_v<T, std::uint64_t> && !std::is_signed_v<T> && !std::is_enum_v<T>) {
      if (value_ < 0) detail::throw_no_integer(static_cast<std::uint64_t>(value));
    }
  }
  constexpr operator std::int64_t() const noexcept { return value_; }  // NOLINT(google-explicit-constructor): as above

  constexpr Integer& operator+=(Integer by) noexcept { return *this = value_ + by.value_; }
  constexpr Integer& operator-=(Integer by) noexcept { return *this = value_ - by.value_; }
  constexpr Integer& operator*=(Integer by) noexcept { return *this = value_ * by.value_; }
  constexpr Integer& operator/=(Integer by) noexcept { return *this = value_ / by.value_; }
  constexpr Integer& operator%=(Integer by) noexcept { return *this = value_ % by.value_; }
  constexpr Integer& operator++() noexcept { return *this += 1; }
  constexpr Integer& operator--() noexcept { return *this -= 1; }
  constexpr Integer operator++(int) noexcept { return std::exchange(value_, value_ + 1); }
  constexpr Integer operator--(int) noexcept { return std::exchange(value_, value_ - 1); }
  /// For {fmt} 10 and later.
  friend constexpr std::int64_t format_as(Integer value) noexcept { return value.value_; }

 private:
  std::int64_t value_ = 0;
};

}  // namespace penstock
