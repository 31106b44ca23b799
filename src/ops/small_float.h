#pragma once

// One element of the floating-point types that C++ lacks, to and from float. The rules are those of PyTorch's c10
// headers; tests/ops/cast_golden.h holds what torch itself answers.

#include <array>
#include <bit>
#include <cstdint>

#include "penstock/half.h"

namespace penstock::ops {

inline constexpr std::uint32_t kFloatSign = 0x80000000U;
inline constexpr std::uint32_t kFloatInfinity = 0x7F800000U;

/// One element of a type as the kernels have it: `decode` to float, `encode` from float.
struct Float16 : float16 {
  static constexpr float decode(Float16 value) noexcept { return value; }
  static constexpr Float16 encode(float value) noexcept { return {float16(value)}; }
};

struct BFloat16 : bfloat16 {
  static constexpr float decode(BFloat16 value) noexcept { return value; }
  static constexpr BFloat16 encode(float value) noexcept { return {bfloat16(value)}; }
};

/// The eight-bit types with sign, `kExponent` and 7 - kExponent bits. kFinite types have no infinity: E4M3FN saturates,
/// and kUnsignedZero types (FNUZ), which have one zero and one NaN, 0x80, become NaN.
template <unsigned kExponent, unsigned kBias, bool kFinite, bool kUnsignedZero>
struct Float8 {
  std::uint8_t bits;

  static constexpr unsigned kMantissa = 7 - kExponent;
  static constexpr unsigned kShift = 23 - kMantissa;

  static constexpr float decode(Float8 value) noexcept { return kDecoded[value.bits]; }

  /// Round to nearest, ties to even. Every case is computed and then chosen, so that the loop over many has no branch.
  static constexpr Float8 encode(float value) noexcept {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (all & kFloatSign) >> 24;
    const std::uint32_t magnitude = all & ~kFloatSign;
    const float aligned = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAlign);
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(aligned) - kAlign;
    const std::uint32_t odd = magnitude >> kShift & 1U;
    const std::uint32_t normal = (magnitude - ((127U - kBias) << 23) + (1U << (kShift - 1)) - 1U + odd) >> kShift;
    const std::uint32_t overflow = magnitude > kFloatInfinity ? kNaN : kLargest;
    std::uint32_t bits = magnitude < (128U - kBias) << 23 ? subnormal : normal;
    bits = magnitude >= kOverflow ? overflow : bits;
    const std::uint32_t signed_bits = kUnsignedZero && bits == 0 ? 0 : bits | sign;
    return {static_cast<std::uint8_t>(signed_bits)};
  }

 private:
  /// Float whose last bit is the unit of this type's subnormals: adding it rounds to them.
  static constexpr std::uint32_t kAlign = (127U - kBias + 1U + kShift) << 23;
  static constexpr std::uint32_t kLargestExponent = 127U - kBias + (1U << kExponent) - 1U;
  /// From here on nothing rounds to a finite value (E4M3FN: above its largest; the tie at 464 rounds down to it).
  static constexpr std::uint32_t kOverflow =
      kUnsignedZero ? (kLargestExponent + 1U) << 23
                    : (kFinite ? std::bit_cast<std::uint32_t>(464.0F) : kLargestExponent << 23);

  static constexpr std::uint32_t kNaN = kUnsignedZero ? 0x80U : 0x7FU;
  /// What overflows becomes.
  static constexpr std::uint32_t kLargest =
      kUnsignedZero ? 0x80U : (kFinite ? 0x7EU : ((1U << kExponent) - 1U) << kMantissa);

  static constexpr float decode_code(std::uint32_t code) noexcept {
    const std::uint32_t sign = (code & 0x80U) << 24;
    const std::uint32_t exponent = (code & 0x7FU) >> kMantissa;
    const std::uint32_t mantissa = code & ((1U << kMantissa) - 1U);
    if (kUnsignedZero && code == 0x80U) return std::bit_cast<float>(0x7F800001U);
    if (!kUnsignedZero && kFinite && (code & 0x7FU) == 0x7FU) return std::bit_cast<float>(sign | 0x7FF00000U);
    if (!kFinite && exponent == (1U << kExponent) - 1U) {
      const std::uint32_t quiet = mantissa != 0 ? 0x00400000U : 0;
      return std::bit_cast<float>(sign | kFloatInfinity | mantissa << kShift | quiet);
    }
    if (exponent == 0) {
      const auto unit = std::bit_cast<float>((128U - kBias - kMantissa) << 23);
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * unit));
    }
    return std::bit_cast<float>(sign | (exponent + 127U - kBias) << 23 | mantissa << kShift);
  }

  static constexpr std::array<float, 256> kDecoded = [] {
    std::array<float, 256> table{};
    for (std::uint32_t code = 0; code < 256; ++code) table[code] = decode_code(code);
    return table;
  }();
};

using Float8E4M3FN = Float8<4, 7, true, false>;
using Float8E5M2 = Float8<5, 15, false, false>;
using Float8E4M3FNUZ = Float8<4, 8, true, true>;
using Float8E5M2FNUZ = Float8<5, 16, true, true>;

/// A power of two, 2^(bits - 127); 0xFF is NaN. Signs are dropped, infinity becomes NaN.
struct Float8E8M0FNU {
  std::uint8_t bits;

  static constexpr float decode(Float8E8M0FNU value) noexcept {
    if (value.bits == 0) return std::bit_cast<float>(0x00400000U);
    if (value.bits == 0xFF) return std::bit_cast<float>(0x7F800001U);
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 23);
  }

  static constexpr Float8E8M0FNU encode(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = bits >> 23 & 0xFFU;
    if (exponent == 0xFF) return {0xFF};
    const bool half = (bits & 0x400000U) != 0;
    const bool more = (bits & 0x3FFFFFU) != 0;
    // Ties go up unless the value is subnormal.
    return {static_cast<std::uint8_t>(exponent + (half && (more || exponent > 0) ? 1U : 0U))};
  }
};

}  // namespace penstock::ops
