#include "data/transform/loops.h"

#include <cstring>

#include "core/processor.h"
#include "ops/integer_type.h"

namespace penstock::data {
namespace {

using enum DType::Code;

template <class T>
[[gnu::always_inline]] inline T at(const std::byte* from, std::size_t index) noexcept {
  T value{};
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

/// What an element is computed with. Mean and deviation are the element's own where a loop has one for each.
template <class T>
struct Values {
  T low{};
  T high{};
  T mean{};
  T std{};
};

// The arithmetic of one element. `kParameter`: it takes a mean or a deviation.

struct Multiply {
  static constexpr bool kParameter = false;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    return x * with.low;
  }
};
struct Clamp {
  static constexpr bool kParameter = false;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    const T raised = x < with.low ? with.low : x;  // false for NaN, which stays
    return raised > with.high ? with.high : raised;
  }
};
struct Subtract {
  static constexpr bool kParameter = true;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    return x - with.mean;
  }
};
struct Divide {
  static constexpr bool kParameter = true;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    return x / with.std;
  }
};
struct Normalize {
  static constexpr bool kParameter = true;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    return (x - with.mean) / with.std;
  }
};
struct ScaleAndNormalize {
  static constexpr bool kParameter = true;
  template <class T>
  [[gnu::always_inline]] static T apply(T x, const Values<T>& with) noexcept {
    return (x * with.low - with.mean) / with.std;
  }
};

/// Elements of type From are computed with, and stored, as T.
template <class Act, class From, class T, bool kSingle>
[[gnu::always_inline]] inline void for_each(const std::byte* __restrict from, std::byte* __restrict to,
                                            std::size_t count, const Operands& operands) noexcept {
  Values<T> with{.low = at<T>(operands.low.data(), 0), .high = at<T>(operands.high.data(), 0)};
  if constexpr (Act::kParameter && kSingle) {
    with.mean = at<T>(operands.mean, 0);
    with.std = at<T>(operands.std, 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (!kSingle) {
      with.mean = at<T>(operands.mean, i);
      with.std = at<T>(operands.std, i);
    }
    const T result = Act::apply(static_cast<T>(at<From>(from, i)), with);
    std::memcpy(to + i * sizeof(T), &result, sizeof(T));
  }
}

template <class Act, class From, class T, bool kSingle>
PENSTOCK_TARGET_AVX2 void avx2_loop(const std::byte* from, std::byte* to, std::size_t count,
                                    const Operands& operands) noexcept {
  for_each<Act, From, T, kSingle>(from, to, count, operands);
}

template <class Act, class From, class T, bool kSingle>
void one_loop(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) noexcept {
  if (core::has_avx2()) return avx2_loop<Act, From, T, kSingle>(from, to, count, operands);
  for_each<Act, From, T, kSingle>(from, to, count, operands);
}

template <class Act, class From, class T = From>
void loop(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) {
  if constexpr (Act::kParameter) {
    if (!operands.single) return one_loop<Act, From, T, false>(from, to, count, operands);
  }
  one_loop<Act, From, T, true>(from, to, count, operands);
}

template <class Act>
Loop floating(DType::Code type) noexcept {
  if (type == kFloat32) return loop<Act, float>;
  return type == kFloat64 ? loop<Act, double> : nullptr;
}

template <class Act>
Loop to_float(DType::Code from) noexcept {
  switch (from) {
    case kUInt8:
      return loop<Act, std::uint8_t, float>;
    case kInt8:
      return loop<Act, std::int8_t, float>;
    case kUInt16:
      return loop<Act, std::uint16_t, float>;
    case kInt16:
      return loop<Act, std::int16_t, float>;
    case kFloat32:
      return loop<Act, float>;
    case kFloat64:
      return loop<Act, double, float>;
    default:
      return nullptr;
  }
}

}  // namespace

Loop scale_to_float_loop(DType::Code from) noexcept { return to_float<Multiply>(from); }
Loop normalize_to_float_loop(DType::Code from) noexcept { return to_float<ScaleAndNormalize>(from); }

Loop multiply_loop(DType::Code type) noexcept { return floating<Multiply>(type); }
Loop subtract_loop(DType::Code type) noexcept { return floating<Subtract>(type); }
Loop divide_loop(DType::Code type) noexcept { return floating<Divide>(type); }
Loop normalize_loop(DType::Code type) noexcept { return floating<Normalize>(type); }

Loop clamp_loop(DType::Code type) noexcept {
  if (!DType(type).is_integer()) return floating<Clamp>(type);
  return ops::with_integer_type(type, [](auto integer) -> Loop { return loop<Clamp, decltype(integer)>; });
}

}  // namespace penstock::data
