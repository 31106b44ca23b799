#pragma once

// PTX's cvt (ISA, 9.7.9, "cvt"), and how values go into registers that are wider than they are.

#include "simulator/ptx/instructions.h"

namespace penstock::simulator::ptx {

/// "The destination register may be wider than the type: the value is sign-extended or zero-extended."
template <class T, class Register>
Register extend(Bits<T> bits) {
  if constexpr (std::is_signed_v<Value<T>> && !kFloating<T>) {
    return static_cast<Register>(static_cast<std::make_signed_t<Register>>(value<T>(bits)));
  } else {
    return static_cast<Register>(bits);
  }
}

/// A floating-point value rounded to an integer, as .rni, .rzi, .rmi and .rpi say.
template <class F>
F integral(F x, Round round) {
  switch (round) {
    case Round::kZero:
      return std::trunc(x);
    case Round::kDown:
      return std::floor(x);
    case Round::kUp:
      return std::ceil(x);
    default: {
      const F below = std::floor(x);
      const F part = x - below;
      const bool up = part > F{0.5} || (part == F{0.5} && std::fmod(below, F{2}) != 0);
      return std::copysign(up ? below + 1 : below, x);
    }
  }
}

/// Out of range: the nearest end of it. NaN: 0 from f32 to at most 32 bits, else the bits of the least signed integer.
template <class D, class S, Mode kMode>
Bits<D> float_to_integer(Bits<S> a) {
  const Value<S> x = integral(input<S, kMode>(a), kMode.round);
  if (x != x) {
    const bool zero = !std::same_as<S, F64> && kWidth<D> < 64;
    return zero ? Bits<D>{0} : static_cast<Bits<D>>(Bits<D>{1} << (kWidth<D> - 1));
  }
  using Limits = std::numeric_limits<Value<D>>;
  // One beyond the greatest integer is a power of two, which both floating types have.
  const Value<S> beyond = std::ldexp(Value<S>{1}, Limits::digits);
  if (x >= beyond) return static_cast<Bits<D>>(Limits::max());
  if (x < static_cast<Value<S>>(Limits::min())) return static_cast<Bits<D>>(Limits::min());
  return static_cast<Bits<D>>(static_cast<Value<D>>(x));
}

template <class D, class S, Mode kMode>
Bits<D> integer_to_integer(Bits<S> a) {
  const Int128 x = value<S>(a);
  if (!kMode.saturate) return static_cast<Bits<D>>(x);
  using Limits = std::numeric_limits<Value<D>>;
  return static_cast<Bits<D>>(std::clamp<Int128>(x, Limits::min(), Limits::max()));
}

template <class D, class S, Mode kMode>
Bits<D> integer_to_float(Bits<S> a) {
  const volatile Value<S> x = value<S>(a);
  return result<D, kMode>(rounded(kMode.round, [&] { return static_cast<Value<D>>(x); }));
}

/// Between the floating types; to the same type the rounding is to an integer, if there is one.
template <class D, class S, Mode kMode>
Bits<D> float_to_float(Bits<S> a) {
  // .ftz applies to what is single precision on either side.
  constexpr Mode kIn{kMode.round, kMode.flush && std::same_as<S, F32>, false};
  constexpr Mode kOut{kMode.round, kMode.flush && std::same_as<D, F32>, kMode.saturate};
  const Value<S> x = input<S, kIn>(a);
  if constexpr (std::same_as<D, S>) {
    return result<D, kOut>(kMode.round == Round::kNone ? x : integral(x, kMode.round));
  } else {
    const volatile Value<S> from = x;
    return result<D, kOut>(rounded(kMode.round, [&] { return static_cast<Value<D>>(from); }));
  }
}

template <class D, class S, Mode kMode = Mode{}>
Bits<D> cvt(Bits<S> a) {
  if constexpr (kFloating<D> && kFloating<S>) {
    return float_to_float<D, S, kMode>(a);
  } else if constexpr (kFloating<D>) {
    return integer_to_float<D, S, kMode>(a);
  } else if constexpr (kFloating<S>) {
    return float_to_integer<D, S, kMode>(a);
  } else {
    return integer_to_integer<D, S, kMode>(a);
  }
}

}  // namespace penstock::simulator::ptx
