#include <cstring>

#include "core/processor.h"
#include "ops/element_loops.h"
#include "ops/element_ops.h"
#include "ops/integer_type.h"

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
void unary_elements(const std::byte* from, std::byte* to, std::size_t count) {
  if (core::has_avx2()) return avx2_loop<Op, T>(from, to, count);
  for_each_element<Op, T>(from, to, count);
}

/// Functions with branches, which do not vectorise.
template <class Op>
UnaryLoop unary_for_complex(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kComplex64) return for_each_element<Op, Complex<float>>;
  return type == kComplex128 ? for_each_element<Op, Complex<double>> : nullptr;
}

template <class Op>
UnaryLoop unary_for_floats(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kFloat32) return unary_elements<Op, float>;
  return type == kFloat64 ? unary_elements<Op, double> : unary_for_complex<Op>(type);
}

/// bool, which is computed as uint8, has no meaning under any operation that comes here.
template <class Op>
UnaryLoop for_numbers(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kFloat32) return unary_elements<Op, float>;
  if (type == kFloat64) return unary_elements<Op, double>;
  if (!DType(type).is_integer()) return nullptr;
  return with_integer_type(type, [](auto integer) -> UnaryLoop { return unary_elements<Op, decltype(integer)>; });
}

UnaryLoop negation(DType::Code type) noexcept {
  if (type == DType::Code::kComplex64) return unary_elements<Negate, Complex<float>>;
  return type == DType::Code::kComplex128 ? unary_elements<Negate, Complex<double>> : for_numbers<Negate>(type);
}

UnaryLoop size(DType::Code type) noexcept {
  if (type == DType::Code::kComplex64) return unary_elements<Absolute, Complex<float>>;
  return type == DType::Code::kComplex128 ? unary_elements<Absolute, Complex<double>> : for_numbers<Absolute>(type);
}

}  // namespace

UnaryLoop unary_loop(UnaryOp op, DType::Code type) noexcept {
  switch (op) {
    case UnaryOp::kNegate:
      return negation(type);
    case UnaryOp::kAbs:
      return size(type);
    case UnaryOp::kRelu:
      return for_numbers<Relu>(type);
    case UnaryOp::kExp:
      return unary_for_floats<Exp>(type);
    case UnaryOp::kLog:
      return unary_for_floats<Log>(type);
    case UnaryOp::kSqrt:
      return unary_for_floats<Sqrt>(type);
    case UnaryOp::kTanh:
      return unary_for_floats<Tanh>(type);
  }
  return nullptr;
}

}  // namespace penstock::ops
