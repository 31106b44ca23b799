#pragma once

// Elementwise operations on real numbers, of any type that they are computed in.

#include <cstdint>
#include <type_traits>

#include "ops/kernels/elements.h"

namespace penstock::ops {

/// Rounds to a half where the operand becomes one on its way.
PENSTOCK_DEVICE inline float by_way_of(float value, Code type) {
  if (type == Code::kFloat16) return Float16::decode(Float16::encode(value));
  return type == Code::kBFloat16 ? BFloat16::decode(BFloat16::encode(value)) : value;
}
PENSTOCK_DEVICE inline double by_way_of(double value, Code) { return value; }
/// Cuts off what the type does not hold.
PENSTOCK_DEVICE inline std::int64_t by_way_of(std::int64_t value, Code type) {
  switch (type) {
    case Code::kUInt8:
      return static_cast<std::uint8_t>(value);
    case Code::kUInt16:
      return static_cast<std::uint16_t>(value);
    case Code::kUInt32:
      return static_cast<std::uint32_t>(value);
    case Code::kInt8:
      return static_cast<std::int8_t>(value);
    case Code::kInt16:
      return static_cast<std::int16_t>(value);
    case Code::kInt32:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}
PENSTOCK_DEVICE inline std::uint64_t by_way_of(std::uint64_t value, Code) { return value; }

template <class T>
PENSTOCK_DEVICE inline T operand(const KernelOperand& from, std::int64_t offset) {
  if (from.from == nullptr) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(from.integer);
    } else {
      return static_cast<T>(from.real);
    }
  }
  const T value = load<T>(from.from + offset, from.type);
  return from.type == from.by_way_of ? value : by_way_of(value, from.by_way_of);
}

template <class T>
PENSTOCK_DEVICE inline void compute_binary(const BinaryKernel& p, std::uint64_t i) {
  const Offsets at = offsets(p.shape, p.a.steps, p.b.steps, i);
  const T a = operand<T>(p.a, at.first);
  const T b = operand<T>(p.b, at.second);
  std::byte* const to = p.to + i * width_of(p.result);
  switch (p.op) {
    case BinaryOp::kAdd:
      return store(to, p.result, Add::apply(a, b));
    case BinaryOp::kSubtract:
      return store(to, p.result, Subtract::apply(a, b));
    case BinaryOp::kMultiply:
      return store(to, p.result, Multiply::apply(a, b));
    case BinaryOp::kDivide:
      // There are no quotients of integers; a device that divided them by 0 would stop.
      if constexpr (!std::is_integral_v<T>) store(to, p.result, Divide::apply(a, b));
      return;
    case BinaryOp::kEqual:
      return write(to, Equal::apply(a, b));
    case BinaryOp::kNotEqual:
      return write(to, NotEqual::apply(a, b));
    default:
      return write(to, p.op == BinaryOp::kLess ? Less::apply(a, b) : LessEqual::apply(a, b));
  }
}

template <class T>
PENSTOCK_DEVICE inline void compute_unary(const UnaryKernel& p, std::uint64_t i) {
  const T a = operand<T>(p.a, offsets(p.shape, p.a.steps, p.a.steps, i).first);
  std::byte* const to = p.to + i * width_of(p.result);
  if (p.op == UnaryOp::kNegate) return store(to, p.result, Negate::apply(a));
  if (p.op == UnaryOp::kAbs) return store(to, p.result, Absolute::apply(a));
  if (p.op == UnaryOp::kRelu) return store(to, p.result, Relu::apply(a));
  if constexpr (std::is_floating_point_v<T>) {
    switch (p.op) {
      case UnaryOp::kExp:
        return store(to, p.result, Exp::apply(a));
      case UnaryOp::kLog:
        return store(to, p.result, Log::apply(a));
      case UnaryOp::kSqrt:
        return store(to, p.result, Sqrt::apply(a));
      default:
        return store(to, p.result, Tanh::apply(a));
    }
  }
}

}  // namespace penstock::ops
