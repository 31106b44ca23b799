#pragma once

// What PTX instructions compute, as functions on the bits of registers. translate.py turns each instruction of a kernel
// into a call of one of them.
//
// The rules are those of NVIDIA's "Parallel Thread Execution ISA", chapter 9 (Instruction Set), in the section of the
// instruction's name. Where that document leaves a result open (the bits of a NaN, a division by zero), the functions
// choose a value that no host would give, or stop the kernel, so that a kernel that relies on it is found.
//
// Compile with -ffp-contract=off: `mul` and `add` round separately, only `fma` rounds once.

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "simulator/ptx/machine.h"

namespace penstock::simulator::ptx {

/// The types that instructions name. `Value` is what is computed with, `Bits` what a register holds of it.
template <class V, class B>
struct Type {
  using Value = V;
  using Bits = B;
};
struct Pred : Type<bool, bool> {};
struct B8 : Type<std::uint8_t, std::uint8_t> {};
struct B16 : Type<std::uint16_t, std::uint16_t> {};
struct B32 : Type<std::uint32_t, std::uint32_t> {};
struct B64 : Type<std::uint64_t, std::uint64_t> {};
struct U8 : Type<std::uint8_t, std::uint8_t> {};
struct U16 : Type<std::uint16_t, std::uint16_t> {};
struct U32 : Type<std::uint32_t, std::uint32_t> {};
struct U64 : Type<std::uint64_t, std::uint64_t> {};
struct S8 : Type<std::int8_t, std::uint8_t> {};
struct S16 : Type<std::int16_t, std::uint16_t> {};
struct S32 : Type<std::int32_t, std::uint32_t> {};
struct S64 : Type<std::int64_t, std::uint64_t> {};
struct F32 : Type<float, std::uint32_t> {};
struct F64 : Type<double, std::uint64_t> {};

// Wide enough for the product of any two integers, and for any integer of either sign.
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <class T>
using Bits = typename T::Bits;
template <class T>
using Value = typename T::Value;
template <class T>
inline constexpr bool kFloating = std::is_floating_point_v<Value<T>>;
template <class T>
inline constexpr unsigned kWidth = 8 * sizeof(Bits<T>);

template <class T>
constexpr Value<T> value(Bits<T> bits) {
  return std::bit_cast<Value<T>>(bits);
}

/// How a result is rounded: to nearest even, towards zero, down, up. `kNone` where it is exact.
enum class Round { kNone, kNearest, kZero, kDown, kUp };

/// Modifiers of an instruction.
struct Mode {
  Round round = Round::kNone;
  bool flush = false;     ///< .ftz: subnormal inputs and results become zeros of their sign
  bool saturate = false;  ///< .sat: into [0, 1], NaN to +0; for integers into the range of the type
};

/// Single precision: "return an unspecified NaN"; this one is what GPUs give. Double precision keeps payloads.
inline constexpr std::uint32_t kCanonicalNan = 0x7FFFFFFF;

template <class T>
constexpr Value<T> flushed(Value<T> x, bool flush) {
  return flush && x != 0 && std::abs(x) < std::numeric_limits<Value<T>>::min() ? std::copysign(Value<T>{0}, x) : x;
}

template <class T, Mode kMode>
constexpr Value<T> input(Bits<T> bits) {
  return flushed<T>(value<T>(bits), kMode.flush);
}

/// The register of a floating-point result.
template <class T, Mode kMode>
constexpr Bits<T> result(Value<T> x) {
  x = flushed<T>(x, kMode.flush);
  if (kMode.saturate) x = x > 0 ? std::min(x, Value<T>{1}) : Value<T>{0};
  if constexpr (std::same_as<T, F32>) {
    if (x != x) return kCanonicalNan;
  }
  return std::bit_cast<Bits<T>>(x);
}

constexpr int fenv_mode(Round round) {
  switch (round) {
    case Round::kZero:
      return FE_TOWARDZERO;
    case Round::kDown:
      return FE_DOWNWARD;
    case Round::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

/// `compute()` under another rounding mode. Operands and results go through volatile variables of the caller, because
/// compilers take the mode for the default one.
template <class Compute>
[[gnu::noinline]] auto rounded(Round round, const Compute& compute) {
  const int before = std::fegetround();
  std::fesetround(fenv_mode(round));
  const volatile auto found = compute();
  std::fesetround(before);
  return +found;
}

template <class T, Mode kMode, class Compute>
Bits<T> arithmetic(const Compute& compute, Bits<T> a, Bits<T> b = {}, Bits<T> c = {}) {
  const Value<T> x = input<T, kMode>(a);
  const Value<T> y = input<T, kMode>(b);
  const Value<T> z = input<T, kMode>(c);
  if constexpr (kMode.round == Round::kNearest || kMode.round == Round::kNone) {
    return result<T, kMode>(compute(x, y, z));
  } else {
    const volatile Value<T> vx = x;
    const volatile Value<T> vy = y;
    const volatile Value<T> vz = z;
    return result<T, kMode>(rounded(kMode.round, [&] { return compute(+vx, +vy, +vz); }));
  }
}

// 9.7.1 and 9.7.3: integer arithmetic wraps, unless .sat (s32 only) clamps it.

template <class T, Mode kMode = Mode{}>
Bits<T> add(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    return arithmetic<T, kMode>([](auto x, auto y, auto) { return x + y; }, a, b);
  } else if constexpr (kMode.saturate) {
    const std::int64_t sum = std::int64_t{value<T>(a)} + value<T>(b);
    return static_cast<Bits<T>>(std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX));
  } else {
    return static_cast<Bits<T>>(a + b);
  }
}

template <class T, Mode kMode = Mode{}>
Bits<T> sub(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    return arithmetic<T, kMode>([](auto x, auto y, auto) { return x - y; }, a, b);
  } else if constexpr (kMode.saturate) {
    const std::int64_t difference = std::int64_t{value<T>(a)} - value<T>(b);
    return static_cast<Bits<T>>(std::clamp<std::int64_t>(difference, INT32_MIN, INT32_MAX));
  } else {
    return static_cast<Bits<T>>(a - b);
  }
}

template <class T, Mode kMode>
Bits<T> mul(Bits<T> a, Bits<T> b) {
  return arithmetic<T, kMode>([](auto x, auto y, auto) { return x * y; }, a, b);
}

/// The lower half of the product, which is the same for signed and unsigned integers.
template <class T>
Bits<T> mul_lo(Bits<T> a, Bits<T> b) {
  return static_cast<Bits<T>>(std::uint64_t{a} * std::uint64_t{b});
}

template <class T>
Bits<T> mul_hi(Bits<T> a, Bits<T> b) {
  using Wide = std::conditional_t<std::is_signed_v<Value<T>>, Int128, UInt128>;
  return static_cast<Bits<T>>((Wide{value<T>(a)} * Wide{value<T>(b)}) >> kWidth<T>);
}

/// The whole product of 16 or 32-bit integers.
template <class T>
auto mul_wide(Bits<T> a, Bits<T> b) {
  using Wide = std::conditional_t<kWidth<T> == 16, std::uint32_t, std::uint64_t>;
  return static_cast<Wide>(Int128{value<T>(a)} * Int128{value<T>(b)});
}

template <class T>
Bits<T> mad_lo(Bits<T> a, Bits<T> b, Bits<T> c) {
  return static_cast<Bits<T>>(mul_lo<T>(a, b) + c);
}

template <class T, Mode kMode>
Bits<T> fma(Bits<T> a, Bits<T> b, Bits<T> c) {
  return arithmetic<T, kMode>([](auto x, auto y, auto z) { return std::fma(x, y, z); }, a, b, c);
}

/// "Division by zero yields an unspecified, machine-specific value", and so does INT_MIN / -1: no kernel may come here.
template <class T>
void check_division(Bits<T> a, Bits<T> b, int line) {
  if (b == 0) throw Fault(line, "an integer is divided by zero, whose result PTX leaves open");
  if constexpr (std::is_signed_v<Value<T>>) {
    if (value<T>(a) == std::numeric_limits<Value<T>>::min() && value<T>(b) == -1) {
      throw Fault(line, "the least integer is divided by -1, whose result PTX leaves open");
    }
  }
}

template <class T>
Bits<T> div(Bits<T> a, Bits<T> b, int line) {
  check_division<T>(a, b, line);
  return static_cast<Bits<T>>(value<T>(a) / value<T>(b));
}

template <class T>
Bits<T> rem(Bits<T> a, Bits<T> b, int line) {
  check_division<T>(a, b, line);
  return static_cast<Bits<T>>(value<T>(a) % value<T>(b));
}

template <class T, Mode kMode>
Bits<T> fdiv(Bits<T> a, Bits<T> b) {
  return arithmetic<T, kMode>([](auto x, auto y, auto) { return x / y; }, a, b);
}

/// div.full.f32 is within 2 units in the last place over the full range; the nearest result is one that it may give.
template <class T, Mode kMode>
Bits<T> div_full(Bits<T> a, Bits<T> b) {
  return fdiv<T, kMode>(a, b);
}

/// div.approx.f32 is a * (1/b): for |b| above 2^126 the reciprocal is 0, so that infinity / b is NaN.
template <class T, Mode kMode>
Bits<T> div_approx(Bits<T> a, Bits<T> b) {
  const float y = input<T, kMode>(b);
  const float x = input<T, kMode>(a);
  if (std::isfinite(y) && std::abs(y) > 0x1p126F) return result<T, kMode>(x * std::copysign(0.0F, y));
  return result<T, kMode>(x / y);
}

template <class T, Mode kMode>
Bits<T> sqrt(Bits<T> a) {
  return arithmetic<T, kMode>([](auto x, auto, auto) { return std::sqrt(x); }, a);
}

template <class T, Mode kMode>
Bits<T> rcp(Bits<T> a) {
  return arithmetic<T, kMode>([](auto x, auto, auto) { return 1 / x; }, a);
}

// The approximate functions of f32: computed in double precision and rounded, which is nearer than PTX promises. Their
// values at zeros, infinities and NaN are those of the tables of PTX.

template <Mode kMode, double kFunction(double)>
std::uint32_t approximate(std::uint32_t a) {
  return result<F32, kMode>(static_cast<float>(kFunction(input<F32, kMode>(a))));
}
inline double reciprocal(double x) { return 1 / x; }
inline double reciprocal_root(double x) { return 1 / std::sqrt(x); }
inline double root(double x) { return std::sqrt(x); }
inline double power_of_two(double x) { return std::exp2(x); }
inline double log_of_two(double x) { return std::log2(x); }
inline double sine(double x) { return std::sin(x); }
inline double cosine(double x) { return std::cos(x); }
inline double hyperbolic_tangent(double x) { return std::tanh(x); }

/// Signed integers: "only for signed integer types"; the least one has no positive counterpart and stays as it is.
template <class T, Mode kMode = Mode{}>
Bits<T> abs(Bits<T> a) {
  if constexpr (kFloating<T>) {
    return result<T, kMode>(std::bit_cast<Value<T>>(static_cast<Bits<T>>(a & (~Bits<T>{} >> 1))));
  } else {
    return value<T>(a) < 0 ? static_cast<Bits<T>>(-a) : a;
  }
}

template <class T, Mode kMode = Mode{}>
Bits<T> neg(Bits<T> a) {
  if constexpr (kFloating<T>) {
    return result<T, kMode>(std::bit_cast<Value<T>>(static_cast<Bits<T>>(a ^ (Bits<T>{1} << (kWidth<T> - 1)))));
  } else {
    return static_cast<Bits<T>>(-a);
  }
}

/// "If one of the inputs is NaN, the other is the result", and +0.0 > -0.0.
template <class T, Mode kMode = Mode{}>
Bits<T> max(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    const Value<T> x = input<T, kMode>(a);
    const Value<T> y = input<T, kMode>(b);
    if (x == 0 && y == 0) return result<T, kMode>(std::signbit(x) ? y : x);
    return result<T, kMode>(std::fmax(x, y));
  } else {
    return static_cast<Bits<T>>(std::max(value<T>(a), value<T>(b)));
  }
}

template <class T, Mode kMode = Mode{}>
Bits<T> min(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    const Value<T> x = input<T, kMode>(a);
    const Value<T> y = input<T, kMode>(b);
    if (x == 0 && y == 0) return result<T, kMode>(std::signbit(x) ? x : y);
    return result<T, kMode>(std::fmin(x, y));
  } else {
    return static_cast<Bits<T>>(std::min(value<T>(a), value<T>(b)));
  }
}

// 9.7.8: logic and shifts.

template <class T>
Bits<T> and_(Bits<T> a, Bits<T> b) {
  return static_cast<Bits<T>>(a & b);
}
template <class T>
Bits<T> or_(Bits<T> a, Bits<T> b) {
  return static_cast<Bits<T>>(a | b);
}
template <class T>
Bits<T> xor_(Bits<T> a, Bits<T> b) {
  return static_cast<Bits<T>>(a ^ b);
}
template <class T>
Bits<T> not_(Bits<T> a) {
  if constexpr (std::same_as<T, Pred>) {
    return !a;
  } else {
    return static_cast<Bits<T>>(~a);
  }
}

/// "Shift amounts greater than the register width N are clamped to N."
template <class T>
Bits<T> shl(Bits<T> a, std::uint32_t by) {
  return by >= kWidth<T> ? Bits<T>{} : static_cast<Bits<T>>(a << by);
}

/// Unsigned and untyped values are filled with zeros, signed ones with their sign.
template <class T>
Bits<T> shr(Bits<T> a, std::uint32_t by) {
  if constexpr (std::is_signed_v<Value<T>>) {
    return static_cast<Bits<T>>(value<T>(a) >> std::min(by, kWidth<T> - 1));
  } else {
    return by >= kWidth<T> ? Bits<T>{} : static_cast<Bits<T>>(a >> by);
  }
}

/// Bits `position` to `position + length` of a, either number modulo 256; those past the end are the sign (signed) or
/// zero, and the highest bit of the field is the sign of what is above it.
template <class T>
Bits<T> bfe(Bits<T> a, std::uint32_t position, std::uint32_t length) {
  position &= 0xFF;
  length &= 0xFF;
  constexpr bool kSigned = std::is_signed_v<Value<T>>;
  if (length == 0) return 0;
  const std::uint32_t top = std::min(position + length - 1, kWidth<T> - 1);
  const bool sign = kSigned && ((a >> top) & 1) != 0;
  Bits<T> out = 0;
  for (std::uint32_t i = 0; i < kWidth<T>; ++i) {
    const bool inside = i < length && position + i < kWidth<T>;
    const bool bit = inside ? ((a >> (position + i)) & 1) != 0 : sign;
    out |= static_cast<Bits<T>>(Bits<T>{bit} << i);
  }
  return out;
}

template <class T>
std::uint32_t clz(Bits<T> a) {
  return static_cast<std::uint32_t>(std::countl_zero(a));
}
template <class T>
std::uint32_t popc(Bits<T> a) {
  return static_cast<std::uint32_t>(std::popcount(a));
}

// 9.7.5: comparison. The ordered ones are false, and the unordered ones (-u) true, where an operand is NaN.

enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };

template <class T, Mode kMode>
constexpr Value<T> operand(Bits<T> bits) {
  if constexpr (kFloating<T>) {
    return input<T, kMode>(bits);
  } else {
    return value<T>(bits);
  }
}

template <class T, Compare kCompare, Mode kMode = Mode{}>
bool setp(Bits<T> a, Bits<T> b) {
  const Value<T> x = operand<T, kMode>(a);
  const Value<T> y = operand<T, kMode>(b);
  const bool unordered = x != x || y != y;
  switch (kCompare) {
    case Compare::kEq:
      return x == y;
    case Compare::kNe:
      return !unordered && x != y;
    case Compare::kLt:
      return x < y;
    case Compare::kLe:
      return x <= y;
    case Compare::kGt:
      return x > y;
    case Compare::kGe:
      return x >= y;
    case Compare::kEqu:
      return unordered || x == y;
    case Compare::kNeu:
      return unordered || x != y;
    case Compare::kLtu:
      return unordered || x < y;
    case Compare::kLeu:
      return unordered || x <= y;
    case Compare::kGtu:
      return unordered || x > y;
    case Compare::kGeu:
      return unordered || x >= y;
    case Compare::kNum:
      return !unordered;
    case Compare::kNan:
      return unordered;
  }
  return false;
}

template <class T>
Bits<T> selp(Bits<T> a, Bits<T> b, bool c) {
  return c ? a : b;
}

}  // namespace penstock::simulator::ptx
