#pragma once

// Operators on tensors: checks, promotion and broadcasting are the same on every device; what follows are loops on the
// host (element_loops.h) or kernels.

#include <string_view>

#include "ops/element_loops.h"
#include "penstock/ops.h"

namespace penstock::ops {

/// `op` of each pair of elements, broadcast and promoted; `name` is the operation's in messages, a string literal.
Tensor binary(BinaryOp op, std::string_view name, const Operand& a, const Operand& b);
Tensor unary(UnaryOp op, std::string_view name, const Tensor& tensor);

}  // namespace penstock::ops
