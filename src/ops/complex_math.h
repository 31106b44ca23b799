#pragma once

// Elementary functions of complex numbers for hosts and devices alike. Each part is within 3 units in the last place;
// signs, infinities, NaN and cuts are those of C's functions (ISO C, annex G).
//
// Those of complex64 are computed in double, those of complex128 in twice that where rounding would add up: so nothing
// but the scale of complex128 needs care. `Number` is what is computed in.

#include <type_traits>

#include "ops/angles.h"
#include "ops/complex.h"
#include "ops/exact.h"
#include "ops/math.h"

namespace penstock::ops {

template <class Real>
using NumberFor = std::conditional_t<sizeof(Real) == sizeof(float), double, DoubleDouble>;

inline constexpr double kInfinity = __builtin_inf();
inline constexpr double kNan = __builtin_nan("");

[[gnu::always_inline]] constexpr bool is_infinite(double x) noexcept { return __builtin_fabs(x) == kInfinity; }
[[gnu::always_inline]] constexpr bool is_finite(double x) noexcept { return __builtin_fabs(x) < kInfinity; }
[[gnu::always_inline]] constexpr bool has_infinity(Complex<double> z) noexcept {
  return is_infinite(z.real) || is_infinite(z.imag);
}

/// The even e for which the square of the larger part of z 2^-e neither overflows nor loses bits; 0 where none is
/// needed.
template <class Number>
[[gnu::always_inline]] constexpr int scale_of(Complex<double> z) noexcept {
  if constexpr (sizeof(Number) == sizeof(double)) return 0;
  const double real = __builtin_fabs(z.real);
  const double imag = __builtin_fabs(z.imag);
  const double large = real > imag ? real : imag;
  return large > 0x1p480 ? 600 : large < 0x1p-400 ? -600 : 0;
}
[[gnu::always_inline]] constexpr Complex<double> scaled(Complex<double> z, int scale) noexcept {
  const auto power = power_of_two<double>(-scale);
  return {z.real * power, z.imag * power};
}

/// The square of the modulus.
template <class Number>
[[gnu::always_inline]] constexpr Number square_of(Complex<double> z) noexcept {
  if constexpr (sizeof(Number) == sizeof(double)) {
    return z.real * z.real + z.imag * z.imag;
  } else {
    return product_of(z.real, z.real) + product_of(z.imag, z.imag);
  }
}

/// The square of the modulus less 1, which is between -1/2 and 1: to 53 bits of what is left.
template <class Number>
[[gnu::always_inline]] constexpr DoubleDouble square_above_one(Complex<double> z) noexcept {
  const double real = __builtin_fabs(z.real);
  const double imag = __builtin_fabs(z.imag);
  const double large = real > imag ? real : imag;
  const double small = real > imag ? imag : real;
  if constexpr (sizeof(Number) == sizeof(double)) {
    return {(large * large - 1) + small * small};
  } else {
    const DoubleDouble of_large = product_of(large, large);
    const DoubleDouble of_small = product_of(small, small);
    const DoubleDouble first = sum_of(of_large.high, -1);
    const DoubleDouble second = sum_of(first.high, of_small.high);
    const DoubleDouble lows = sum_of(second.low, of_large.low);
    const DoubleDouble more = sum_of(lows.high, of_small.low);
    const DoubleDouble all = sum_of(more.high, first.low);
    const DoubleDouble sum = sum_of(second.high, all.high);
    return joined(sum.high, sum.low + (all.low + more.low + lows.low));
  }
}

/// x = n ln(2) + r with |r| <= ln(2) / 2, and expm1(r).
template <class Number>
struct SplitOf {
  std::int64_t n;
  Number expm1;
};
template <class Number>
[[gnu::always_inline]] constexpr SplitOf<Number> split_of(double x) noexcept {
  using M = MathOf<double>;
  const Split<double> parts = split(x);
  if constexpr (sizeof(Number) == sizeof(double)) {
    return {parts.n, parts.expm1};
  } else {
    const auto n = static_cast<double>(static_cast<std::int32_t>(parts.n));
    const DoubleDouble r = sum_of(x - n * M::kLn2High, -n * M::kLn2Low);
    return {parts.n, joined(r.high, r.low + r.high * r.high * M::expm1_rest(r.high))};
  }
}

template <class Number>
[[gnu::always_inline]] constexpr double modulus_by(Complex<double> z) noexcept {
  const int scale = scale_of<Number>(z);
  const double modulus = to_double(sqrt_of(square_of<Number>(scaled(z, scale)))) * power_of_two<double>(scale);
  return has_infinity(z) ? kInfinity : modulus;
}

template <class Number>
[[gnu::always_inline]] constexpr Complex<double> exp_by(Complex<double> z) noexcept {
  if (z.imag == 0) return {exp_of(z.real), z.imag};
  if (!is_finite(z.imag)) {
    if (z.real == -kInfinity) return {0, __builtin_copysign(0.0, z.imag)};
    return {z.real == kInfinity ? kInfinity : kNan, kNan};
  }
  // What is smaller comes to 0, what is larger to infinity, whatever the sine and the cosine.
  const double low = z.real < -747.0 ? -747.0 : z.real;
  const SplitOf<Number> parts = split_of<Number>(low > 1500.0 ? 1500.0 : low);
  const SineCosine<Number> angle = sine_cosine_of<Number>(z.imag);
  const Number size = Number{1} + parts.expm1;
  // A power comes first, because a sine may be subnormal; the others in two steps, so that neither is out of range and
  // a subnormal result is rounded once.
  const std::int64_t n = parts.n - 200;
  const auto first = power_of_two<double>(n >> 1);
  const auto second = power_of_two<double>(n - (n >> 1));
  const auto sized = [&](Number part) { return to_double(by_power(part, 0x1p200) * size) * first * second; };
  return {sized(angle.cosine), sized(angle.sine)};
}

/// Of a finite number that is not 0.
template <class Number>
[[gnu::always_inline]] constexpr double log_of_modulus(Complex<double> z) noexcept {
  using M = MathOf<double>;
  const int scale = scale_of<Number>(z);
  const Complex<double> in = scaled(z, scale);
  const DoubleDouble square{square_of<Number>(in)};
  const AboutOne<double> parts = about_one(square.high);
  const auto e = static_cast<double>(static_cast<int>(parts.exponent) + 2 * scale);
  const DoubleDouble above = e == 0 ? square_above_one<Number>(in)
                                    : DoubleDouble{parts.m - 1, square.low * power_of_two<double>(-parts.exponent)};
  const double low = e * M::kLn2Low + above.low / parts.m;
  return 0.5 * log_above_one(above.high, e * M::kLn2High, low);
}

template <class Number>
[[gnu::always_inline]] constexpr Complex<double> log_by(Complex<double> z) noexcept {
  if (z.real != z.real || z.imag != z.imag) return {has_infinity(z) ? kInfinity : kNan, kNan};
  if (has_infinity(z)) {
    // An infinite part outweighs a finite one; two make a diagonal.
    const double real = __builtin_copysign(is_infinite(z.real) ? 1.0 : 0.0, z.real);
    const double imag = __builtin_copysign(is_infinite(z.imag) ? 1.0 : 0.0, z.imag);
    return {kInfinity, angle_of(real, imag)};
  }
  if (z.real == 0 && z.imag == 0) return {-kInfinity, angle_of(__builtin_copysign(1.0, z.real), z.imag)};
  return {log_of_modulus<Number>(z), angle_of(z.real, z.imag)};
}

template <class Number>
[[gnu::always_inline]] constexpr Complex<double> sqrt_by(Complex<double> z) noexcept {
  if (is_infinite(z.imag)) return {kInfinity, z.imag};
  if (z.real == kInfinity) return {kInfinity, is_finite(z.imag) ? __builtin_copysign(0.0, z.imag) : kNan};
  if (z.real == -kInfinity) return {is_finite(z.imag) ? 0 : kNan, __builtin_copysign(kInfinity, z.imag)};
  if (z.real == 0 && z.imag == 0) return {0, z.imag};
  const int scale = scale_of<Number>(z);
  const Complex<double> in = scaled(z, scale);
  const Number sum = sqrt_of(square_of<Number>(in)) + Number{__builtin_fabs(in.real)};
  const double root = to_double(sqrt_of(by_power(sum, 0.5))) * power_of_two<double>(scale / 2);
  const double other = __builtin_fabs(z.imag) / (2 * root);
  const bool left = z.real < 0;
  return {left ? other : root, __builtin_copysign(left ? root : other, z.imag)};
}

template <class Number>
[[gnu::always_inline]] constexpr Complex<double> tanh_by(Complex<double> z) noexcept {
  if (z.imag == 0) return {tanh_of(z.real), z.imag};
  if (!is_finite(z.imag)) {
    if (is_infinite(z.real)) return {__builtin_copysign(1.0, z.real), __builtin_copysign(0.0, z.imag)};
    return {z.real == 0 ? z.real : kNan, kNan};
  }
  const SineCosine<Number> angle = sine_cosine_of<Number>(z.imag);
  const double sine = to_double(angle.sine);
  const double size = __builtin_fabs(z.real);
  if (size > 22) {
    // The quotient below is 1 in double, and its imaginary part what only the power takes to 0.
    const double imag = 4 * to_double(angle.cosine) * exp_of(-2 * size) * sine;
    return {__builtin_copysign(1.0, z.real), imag};
  }
  // tanh(x + i y) = (sinh 2 x + i sin 2 y) / (cosh 2 x + cos 2 y) by w = exp(2 x) - 1, so that nothing cancels.
  const SplitOf<Number> parts = split_of<Number>(2 * size);
  const auto power = power_of_two<double>(parts.n);
  const Number w = Number{power - 1} + by_power(parts.expm1, power);
  const Number part = by_power((Number{1} + w) * angle.cosine, 4);
  const Number divisor = w * w + part * angle.cosine;
  const Number ratio = part / divisor;
  const double real = to_double(w * ((Number{2} + w) / divisor));
  const double imag = to_double(angle.sine * ratio);
  return {__builtin_copysign(real, z.real), __builtin_copysign(imag, sine * to_double(ratio))};
}

template <class Real>
[[gnu::always_inline]] constexpr Complex<double> widened(Complex<Real> z) noexcept {
  return {z.real, z.imag};
}
template <class Real>
[[gnu::always_inline]] constexpr Complex<Real> rounded(Complex<double> z) noexcept {
  return {static_cast<Real>(z.real), static_cast<Real>(z.imag)};
}

template <class Real>
[[gnu::always_inline]] constexpr Real modulus_of(Complex<Real> z) noexcept {
  return static_cast<Real>(modulus_by<NumberFor<Real>>(widened(z)));
}
template <class Real>
[[gnu::always_inline]] constexpr Complex<Real> exp_of(Complex<Real> z) noexcept {
  return rounded<Real>(exp_by<NumberFor<Real>>(widened(z)));
}
template <class Real>
[[gnu::always_inline]] constexpr Complex<Real> log_of(Complex<Real> z) noexcept {
  return rounded<Real>(log_by<NumberFor<Real>>(widened(z)));
}
template <class Real>
[[gnu::always_inline]] constexpr Complex<Real> sqrt_of(Complex<Real> z) noexcept {
  return rounded<Real>(sqrt_by<NumberFor<Real>>(widened(z)));
}
template <class Real>
[[gnu::always_inline]] constexpr Complex<Real> tanh_of(Complex<Real> z) noexcept {
  return rounded<Real>(tanh_by<NumberFor<Real>>(widened(z)));
}

}  // namespace penstock::ops
