#pragma once

/// Parameters that are true or false. A pointer converts to bool, and so does a text: with plain bool parameters
/// `cast(DType::uint8, "x")` would compile, and mean something else than it says.

#include <concepts>
#include <optional>

#include "penstock/standard.h"

namespace penstock {

/// A parameter of type bool, which takes bool itself only.
class Flag {
 public:
  /// What it stands for, as Integer::value_type.
  using value_type = bool;

  template <std::same_as<bool> T>
  constexpr Flag(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor): it stands for a bool
  constexpr operator bool() const noexcept { return value_; }  // NOLINT(google-explicit-constructor): as above
  /// For {fmt} 10 and later.
  friend constexpr bool format_as(Flag value) noexcept { return value.value_; }

 private:
  bool value_;
};

/// A parameter or option of type std::optional<bool>, which takes that, bool itself, or nothing.
class OptionalFlag {
 public:
  // NOLINTBEGIN(google-explicit-constructor): it stands for an optional bool
  constexpr OptionalFlag() noexcept = default;
  constexpr OptionalFlag(std::nullopt_t) noexcept {}
  template <std::same_as<bool> T>
  constexpr OptionalFlag(T value) noexcept : value_(value) {}
  template <std::same_as<std::optional<bool>> T>
  constexpr OptionalFlag(T value) noexcept : value_(value) {}
  constexpr operator std::optional<bool>() const noexcept { return value_; }
  // NOLINTEND(google-explicit-constructor)
  constexpr bool has_value() const noexcept { return value_.has_value(); }
  constexpr bool value_or(Flag other) const noexcept { return value_.value_or(other); }
  friend constexpr bool operator==(const OptionalFlag&, const OptionalFlag&) noexcept = default;

 private:
  std::optional<bool> value_;
};

}  // namespace penstock
