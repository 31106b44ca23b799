#pragma once

// The arithmetic of complex elements.

namespace penstock::ops {

/// Products and quotients are those of the plain formulas: infinities are not recovered as C's complex product does.
template <class Real>
struct Complex {
  Real real;
  Real imag;

  friend constexpr Complex operator+(Complex a, Complex b) noexcept { return {a.real + b.real, a.imag + b.imag}; }
  friend constexpr Complex operator-(Complex a, Complex b) noexcept { return {a.real - b.real, a.imag - b.imag}; }
  friend constexpr Complex operator*(Complex a, Complex b) noexcept {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  /// By the larger part of the divisor, so that its square need not be representable (Smith, 1962).
  friend constexpr Complex operator/(Complex a, Complex b) noexcept {
    const Real real_size = b.real < 0 ? -b.real : b.real;
    const Real imag_size = b.imag < 0 ? -b.imag : b.imag;
    if (real_size == 0 && imag_size == 0) return {a.real / Real{0}, a.imag / Real{0}};
    if (real_size >= imag_size) {
      const Real ratio = b.imag / b.real;
      const Real scale = b.real + b.imag * ratio;
      return {(a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale};
    }
    const Real ratio = b.real / b.imag;
    const Real scale = b.real * ratio + b.imag;
    return {(a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale};
  }
  friend constexpr bool operator==(Complex a, Complex b) noexcept { return a.real == b.real && a.imag == b.imag; }
};

}  // namespace penstock::ops
