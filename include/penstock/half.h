#pragma once

/// The two floating-point types of 16 bits that C++ has no names for: `float16` (IEEE binary16) and `bfloat16` (the
/// upper half of a float). They are what `Tensor::values<float16>()` and `at<bfloat16>(i)` give. Values are stored, and
/// converted to float for arithmetic: `float(x) * 2`.

#include <bit>
#include <cstdint>

#include "penstock/standard.h"

namespace penstock {

/// IEEE binary16: 11 bits of precision, up to 65504. A plain value of two bytes. The rules are those of PyTorch's Half:
/// signalling NaNs become quiet and keep their payload, as the processor's own conversion does it.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() noexcept = default;
  /// Round to nearest, ties to even; infinity from 65520.
  constexpr explicit float16(float value) noexcept : bits(encoded(std::bit_cast<std::uint32_t>(value))) {}
  static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 out;
    out.bits = bits;
    return out;
  }

  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): every value is a float
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t magnitude = bits & 0x7FFFU;
    if (magnitude >= 0x7C00U) {
      const std::uint32_t quiet = magnitude > 0x7C00U ? 0x00400000U : 0;
      return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13 | quiet);
    }
    if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
    // Subnormal: 2^-24 is the unit.
    const float size = static_cast<float>(magnitude) * std::bit_cast<float>(103U << 23);
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }

 private:
  static constexpr std::uint16_t encoded(std::uint32_t value) noexcept {
    const std::uint32_t sign = (value & 0x80000000U) >> 16;
    const std::uint32_t magnitude = value & 0x7FFFFFFFU;
    const auto make = [](std::uint32_t out) { return static_cast<std::uint16_t>(out); };
    if (magnitude > 0x7F800000U) return make(sign | 0x7E00U | (magnitude >> 13 & 0x3FFU));
    if (magnitude >= 143U << 23) return make(sign | 0x7C00U);
    if (magnitude < 113U << 23) {
      // Adding 0.5 aligns the result's unit with float's last bit, so that the addition rounds.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return make(sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    const std::uint32_t odd = magnitude >> 13 & 1U;
    return make(sign | (magnitude - (112U << 23) + 0xFFFU + odd) >> 13);
  }
};

/// The upper half of a float: 8 bits of precision and a float's range. A plain value of two bytes.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() noexcept = default;
  /// Round to nearest, ties to even. Every NaN becomes 0x7FC0, as in PyTorch.
  constexpr explicit bfloat16(float value) noexcept : bits(encoded(std::bit_cast<std::uint32_t>(value))) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 out;
    out.bits = bits;
    return out;
  }

  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): every value is a float
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  static constexpr std::uint16_t encoded(std::uint32_t value) noexcept {
    const std::uint32_t rounded = (value + 0x7FFFU + (value >> 16 & 1U)) >> 16;
    const bool is_nan = (value & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<std::uint16_t>(is_nan ? 0x7FC0U : rounded);
  }
};

}  // namespace penstock
