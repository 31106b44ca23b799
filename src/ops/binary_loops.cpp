#include <cstring>

#include "core/processor.h"
#include "ops/element_loops.h"
#include "ops/element_ops.h"
#include "ops/integer_type.h"

namespace penstock::ops {
namespace {

template <class Op, class T>
[[gnu::always_inline]] inline void for_each_element(const std::byte* a, const std::byte* b, std::byte* to,
                                                    std::size_t count) {
  using Result = decltype(Op::apply(T{}, T{}));
  for (std::size_t i = 0; i < count; ++i) {
    T left{};
    T right{};
    std::memcpy(&left, a + i * sizeof(T), sizeof(T));
    std::memcpy(&right, b + i * sizeof(T), sizeof(T));
    const Result result = Op::apply(left, right);
    std::memcpy(to + i * sizeof(Result), &result, sizeof(Result));
  }
}

template <class Op, class T>
PENSTOCK_TARGET_AVX2 void avx2_loop(const std::byte* a, const std::byte* b, std::byte* to, std::size_t count) {
  for_each_element<Op, T>(a, b, to, count);
}

template <class Op, class T>
void loop(const std::byte* a, const std::byte* b, std::byte* to, std::size_t count) {
  if (core::has_avx2()) return avx2_loop<Op, T>(a, b, to, count);
  for_each_element<Op, T>(a, b, to, count);
}

template <class Op>
BinaryLoop for_floats(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kFloat32) return loop<Op, float>;
  return type == kFloat64 ? loop<Op, double> : nullptr;
}

template <class Op>
BinaryLoop for_complex(DType::Code type) noexcept {
  using enum DType::Code;
  if (type == kComplex64) return loop<Op, Complex<float>>;
  return type == kComplex128 ? loop<Op, Complex<double>> : for_floats<Op>(type);
}

/// For operations to which the sign of an integer is nothing: one loop for each width.
template <class Op>
BinaryLoop for_bits(DType::Code type) noexcept {
  const DType dtype(type);
  if (!dtype.is_integer()) return for_complex<Op>(type);
  switch (dtype.itemsize()) {
    case 1:
      return loop<Op, std::uint8_t>;
    case 2:
      return loop<Op, std::uint16_t>;
    case 4:
      return loop<Op, std::uint32_t>;
    default:
      return loop<Op, std::uint64_t>;
  }
}

template <class Op>
BinaryLoop for_order(DType::Code type) noexcept {
  if (!DType(type).is_integer()) return for_floats<Op>(type);
  return with_integer_type(type, [](auto integer) -> BinaryLoop { return loop<Op, decltype(integer)>; });
}

}  // namespace

BinaryLoop binary_loop(BinaryOp op, DType::Code type) noexcept {
  switch (op) {
    case BinaryOp::kAdd:
      return for_bits<Add>(type);
    case BinaryOp::kSubtract:
      return for_bits<Subtract>(type);
    case BinaryOp::kMultiply:
      return for_bits<Multiply>(type);
    case BinaryOp::kDivide:
      return for_complex<Divide>(type);
    case BinaryOp::kEqual:
      return for_bits<Equal>(type);
    case BinaryOp::kNotEqual:
      return for_bits<NotEqual>(type);
    case BinaryOp::kLess:
      return for_order<Less>(type);
    case BinaryOp::kLessEqual:
      return for_order<LessEqual>(type);
  }
  return nullptr;
}

}  // namespace penstock::ops
