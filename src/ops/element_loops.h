#pragma once

// The inner loops of elementwise operations on the host: one for each operation and type. elementwise.cpp promotes,
// broadcasts and calls them; kernels/ has the device's, from the same arithmetic (element_ops.h).

#include <cstddef>
#include <cstdint>

#include "penstock/dtype.h"

namespace penstock::ops {

/// Device kernels number them likewise. Greater is less with the operands exchanged.
enum class BinaryOp : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kEqual, kNotEqual, kLess, kLessEqual };
enum class UnaryOp : std::uint8_t { kNegate, kAbs, kRelu, kExp, kLog, kSqrt, kTanh };

/// Work on `count` elements that lie one behind the other, unaligned or not; `to` may be an operand. Elements have a
/// type that compute_type names. Results have the operands' type, but comparisons give uint8 0 and 1 and kAbs of a
/// complex number a real one.
using BinaryLoop = void (*)(const std::byte* a, const std::byte* b, std::byte* to, std::size_t count);
using UnaryLoop = void (*)(const std::byte* from, std::byte* to, std::size_t count);

/// Null where the operation has no meaning for the type.
BinaryLoop binary_loop(BinaryOp op, DType::Code type) noexcept;
UnaryLoop unary_loop(UnaryOp op, DType::Code type) noexcept;

}  // namespace penstock::ops
