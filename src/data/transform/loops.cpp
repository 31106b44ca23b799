#include "data/transform/loops.h"

#include <cstring>

#include "core/processor.h"

namespace penstock::data {
namespace {

using enum DType::Code;

template <class T>
[[gnu::always_inline]] inline T at(const std::byte* from, std::size_t index) noexcept {
  T value{};
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

struct Multiply {
  template <class T, bool kSingle>
  [[gnu::always_inline]] static T apply(T x, std::size_t, T low, T, const Operands&) noexcept {
    return x * low;
  }
  static constexpr bool kConstant = true;
};
struct Subtract {
  template <class T, bool kSingle>
  [[gnu::always_inline]] static T apply(T x, std::size_t i, T mean, T, const Operands& operands) noexcept {
    return x - (kSingle ? mean : at<T>(operands.mean, i));
  }
  static constexpr bool kConstant = false;
};
struct Divide {
  template <class T, bool kSingle>
  [[gnu::always_inline]] static T apply(T x, std::size_t i, T, T std, const Operands& operands) noexcept {
    return x / (kSingle ? std : at<T>(operands.std, i));
  }
  static constexpr bool kConstant = false;
};
struct Normalize {
  template <class T, bool kSingle>
  [[gnu::always_inline]] static T apply(T x, std::size_t i, T mean, T std, const Operands& operands) noexcept {
    return (x - (kSingle ? mean : at<T>(operands.mean, i))) / (kSingle ? std : at<T>(operands.std, i));
  }
  static constexpr bool kConstant = false;
};
struct Clamp {
  template <class T, bool kSingle>
  [[gnu::always_inline]] static T apply(T x, std::size_t, T low, T high, const Operands&) noexcept {
    const T raised = x < low ? low : x;  // false for NaN, which stays
    return raised > high ? high : raised;
  }
  static constexpr bool kConstant = true;
};

template <class Act, class T, bool kSingle>
[[gnu::always_inline]] inline void for_each(const std::byte* __restrict from, std::byte* __restrict to,
                                            std::size_t count, const Operands& operands) noexcept {
  T first{};
  T second{};
  if constexpr (Act::kConstant) {
    first = at<T>(operands.low.data(), 0);
    second = at<T>(operands.high.data(), 0);
  } else if constexpr (kSingle) {
    if (operands.mean != nullptr) first = at<T>(operands.mean, 0);
    if (operands.std != nullptr) second = at<T>(operands.std, 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const T result = Act::template apply<T, kSingle>(at<T>(from, i), i, first, second, operands);
    std::memcpy(to + i * sizeof(T), &result, sizeof(T));
  }
}

template <class Act, class T, bool kSingle>
PENSTOCK_TARGET_AVX2 void avx2_loop(const std::byte* from, std::byte* to, std::size_t count,
                                    const Operands& operands) noexcept {
  for_each<Act, T, kSingle>(from, to, count, operands);
}

template <class Act, class T, bool kSingle>
void one_loop(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) noexcept {
  if (core::has_avx2()) return avx2_loop<Act, T, kSingle>(from, to, count, operands);
  for_each<Act, T, kSingle>(from, to, count, operands);
}

template <class Act, class T>
void loop(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) {
  if (operands.single) return one_loop<Act, T, true>(from, to, count, operands);
  if constexpr (!Act::kConstant) one_loop<Act, T, false>(from, to, count, operands);
}

template <class Act>
Loop floating(DType::Code type) noexcept {
  if (type == kFloat32) return loop<Act, float>;
  return type == kFloat64 ? loop<Act, double> : nullptr;
}

template <class From, bool kNormalize, bool kSingle>
[[gnu::always_inline]] inline void to_float(const std::byte* __restrict from, std::byte* __restrict to,
                                            std::size_t count, const Operands& operands) noexcept {
  const float factor = at<float>(operands.low.data(), 0);
  float mean = 0;
  float std = 1;
  if constexpr (kNormalize && kSingle) {
    mean = at<float>(operands.mean, 0);
    std = at<float>(operands.std, 0);
  }
  for (std::size_t i = 0; i < count; ++i) {
    float x = static_cast<float>(at<From>(from, i)) * factor;
    if constexpr (kNormalize) {
      x = (x - (kSingle ? mean : at<float>(operands.mean, i))) / (kSingle ? std : at<float>(operands.std, i));
    }
    std::memcpy(to + i * sizeof(float), &x, sizeof(float));
  }
}

template <class From, bool kNormalize, bool kSingle>
PENSTOCK_TARGET_AVX2 void avx2_to_float(const std::byte* from, std::byte* to, std::size_t count,
                                        const Operands& operands) noexcept {
  to_float<From, kNormalize, kSingle>(from, to, count, operands);
}

template <class From, bool kNormalize, bool kSingle>
void one_to_float(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) noexcept {
  if (core::has_avx2()) return avx2_to_float<From, kNormalize, kSingle>(from, to, count, operands);
  to_float<From, kNormalize, kSingle>(from, to, count, operands);
}

template <class From, bool kNormalize>
void to_float_loop(const std::byte* from, std::byte* to, std::size_t count, const Operands& operands) {
  if (!kNormalize || operands.single) return one_to_float<From, kNormalize, true>(from, to, count, operands);
  one_to_float<From, kNormalize, false>(from, to, count, operands);
}

template <bool kNormalize>
Loop to_float_loop(DType::Code from) noexcept {
  switch (from) {
    case kUInt8:
      return to_float_loop<std::uint8_t, kNormalize>;
    case kInt8:
      return to_float_loop<std::int8_t, kNormalize>;
    case kUInt16:
      return to_float_loop<std::uint16_t, kNormalize>;
    case kInt16:
      return to_float_loop<std::int16_t, kNormalize>;
    case kFloat32:
      return to_float_loop<float, kNormalize>;
    case kFloat64:
      return to_float_loop<double, kNormalize>;
    default:
      return nullptr;
  }
}

}  // namespace

Loop scale_to_float_loop(DType::Code from) noexcept { return to_float_loop<false>(from); }
Loop normalize_to_float_loop(DType::Code from) noexcept { return to_float_loop<true>(from); }

Loop multiply_loop(DType::Code type) noexcept { return floating<Multiply>(type); }
Loop subtract_loop(DType::Code type) noexcept { return floating<Subtract>(type); }
Loop divide_loop(DType::Code type) noexcept { return floating<Divide>(type); }
Loop normalize_loop(DType::Code type) noexcept { return floating<Normalize>(type); }

Loop clamp_loop(DType::Code type) noexcept {
  switch (type) {
    case kUInt8:
      return loop<Clamp, std::uint8_t>;
    case kUInt16:
      return loop<Clamp, std::uint16_t>;
    case kUInt32:
      return loop<Clamp, std::uint32_t>;
    case kUInt64:
      return loop<Clamp, std::uint64_t>;
    case kInt8:
      return loop<Clamp, std::int8_t>;
    case kInt16:
      return loop<Clamp, std::int16_t>;
    case kInt32:
      return loop<Clamp, std::int32_t>;
    case kInt64:
      return loop<Clamp, std::int64_t>;
    default:
      return floating<Clamp>(type);
  }
}

}  // namespace penstock::data
