#include <cmath>
#include <complex>
#include <cstring>

#include "ops/element_loops.h"
#include "ops/element_ops.h"
#include "ops/processor.h"

namespace penstock::ops {
namespace {

template <class Op, class T>
[[gnu::always_inline]] inline void for_each_element(const std::byte* from, std::byte* to, std::size_t count) {
  using Result = decltype(Op::apply(T{}));
  for (std::size_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    const Result result = Op::apply(value);
    std::memcpy(to + i * sizeof(Result), &result, sizeof(Result));
  }
}

template <class Op, class T>
PENSTOCK_TARGET_AVX2 void avx2_loop(const std::byte* from, std::byte* to, std::size_t count) {
  for_each_element<Op, T>(from, to, count);
}

template <class Op, class T>
void loop(const std::byte* from, std::byte* to, std::size_t count) {
  if (has_avx2()) return avx2_loop<Op, T>(from, to, count);
  for_each_element<Op, T>(from, to, count);
}

/// The standard library's function of a complex number.
template <auto kFunction>
struct OfComplex {
  template <class Real>
  static auto apply(std::complex<Real> value) {
    return kFunction(value);
  }
};

template <class Op, auto kFunction>
UnaryLoop for_floats(DType::Code type) noexcept {
  using enum DType::Code;
  switch (type) {
    case kFloat32:
      return loop<Op, float>;
    case kFloat64:
      return loop<Op, double>;
    case kComplex64:
      return for_each_element<OfComplex<kFunction>, std::complex<float>>;
    case kComplex128:
      return for_each_element<OfComplex<kFunction>, std::complex<double>>;
    default:
      return nullptr;
  }
}

/// bool, which is computed as uint8, has no meaning under any operation that comes here.
template <class Op>
UnaryLoop for_numbers(DType::Code type) noexcept {
  using enum DType::Code;
  switch (type) {
    case kUInt8:
      return loop<Op, std::uint8_t>;
    case kUInt16:
      return loop<Op, std::uint16_t>;
    case kUInt32:
      return loop<Op, std::uint32_t>;
    case kUInt64:
      return loop<Op, std::uint64_t>;
    case kInt8:
      return loop<Op, std::int8_t>;
    case kInt16:
      return loop<Op, std::int16_t>;
    case kInt32:
      return loop<Op, std::int32_t>;
    case kInt64:
      return loop<Op, std::int64_t>;
    case kFloat32:
      return loop<Op, float>;
    case kFloat64:
      return loop<Op, double>;
    default:
      return nullptr;
  }
}

UnaryLoop negation(DType::Code type) noexcept {
  if (type == DType::Code::kComplex64) return loop<Negate, Complex<float>>;
  return type == DType::Code::kComplex128 ? loop<Negate, Complex<double>> : for_numbers<Negate>(type);
}

UnaryLoop modulus(DType::Code type) noexcept {
  constexpr auto abs = [](auto value) { return std::abs(value); };
  if (DType(type).is_complex()) return for_floats<Absolute, abs>(type);
  return for_numbers<Absolute>(type);
}

}  // namespace

UnaryLoop unary_loop(UnaryOp op, DType::Code type) noexcept {
  switch (op) {
    case UnaryOp::kNegate:
      return negation(type);
    case UnaryOp::kAbs:
      return modulus(type);
    case UnaryOp::kRelu:
      return for_numbers<Relu>(type);
    case UnaryOp::kExp:
      return for_floats<Exp, [](auto value) { return std::exp(value); }>(type);
    case UnaryOp::kLog:
      return for_floats<Log, [](auto value) { return std::log(value); }>(type);
    case UnaryOp::kSqrt:
      return for_floats<Sqrt, [](auto value) { return std::sqrt(value); }>(type);
    case UnaryOp::kTanh:
      return for_floats<Tanh, [](auto value) { return std::tanh(value); }>(type);
  }
  return nullptr;
}

}  // namespace penstock::ops
