#pragma once

// What operations do to one element, for hosts and devices alike. Elements have the type that an operation computes in
// (compute_type in promotion.h): bool is uint8 with 0 and 1, halves and float8 are float.

#include <cstdint>
#include <type_traits>

#include "ops/complex.h"
#include "ops/complex_math.h"
#include "ops/math.h"

namespace penstock::ops {

/// Where sums and products of T are formed: wide enough and unsigned, so that they wrap around.
template <class T>
using Wrapping =
    std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>>;

struct Add {
  template <class T>
  static constexpr T apply(T a, T b) noexcept {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T>
  static constexpr T apply(T a, T b) noexcept {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <class T>
  static constexpr T apply(T a, T b) noexcept {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Divide {
  template <class T>
  static constexpr T apply(T a, T b) noexcept {
    return a / b;
  }
};
struct Equal {
  template <class T>
  static constexpr std::uint8_t apply(T a, T b) noexcept {
    return a == b ? 1 : 0;
  }
};
struct NotEqual {
  template <class T>
  static constexpr std::uint8_t apply(T a, T b) noexcept {
    return a == b ? 0 : 1;
  }
};
struct Less {
  template <class T>
  static constexpr std::uint8_t apply(T a, T b) noexcept {
    return a < b ? 1 : 0;
  }
};
struct LessEqual {
  template <class T>
  static constexpr std::uint8_t apply(T a, T b) noexcept {
    return a <= b ? 1 : 0;
  }
};

struct Negate {
  template <class T>
  static constexpr T apply(T a) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
    } else if constexpr (std::is_floating_point_v<T>) {
      return -a;
    } else {
      return {-a.real, -a.imag};
    }
  }
};
struct Absolute {
  template <class T>
  static constexpr T apply(T a) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = typename MathOf<T>::Bits;
      return std::bit_cast<T>(std::bit_cast<Bits>(a) & ~(Bits{1} << (sizeof(T) * 8 - 1)));
    } else {
      return a < T{0} ? Negate::apply(a) : a;
    }
  }
  template <class Real>
  static constexpr Real apply(Complex<Real> a) noexcept {
    return modulus_of(a);
  }
};
struct Relu {
  template <class T>
  static constexpr T apply(T a) noexcept {
    return a < T{0} ? T{0} : a;
  }
};
struct Exp {
  template <class T>
  static constexpr T apply(T a) noexcept {
    return exp_of(a);
  }
};
struct Log {
  template <class T>
  static constexpr T apply(T a) noexcept {
    return log_of(a);
  }
};
struct Sqrt {
  template <class T>
  static constexpr T apply(T a) noexcept {
    return sqrt_of(a);
  }
};
struct Tanh {
  template <class T>
  static constexpr T apply(T a) noexcept {
    return tanh_of(a);
  }
};

}  // namespace penstock::ops
