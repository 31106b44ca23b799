// Arithmetic of elements: find the type to compute in (promotion.h), ask the table of loops whether that type has the
// operation, then go over blocks of elements on the host (blocks.h) or launch a kernel (device_ops.h). Both follow the
// same table, so that every device refuses the same types.

#include <array>
#include <string_view>

#include "core/format.h"
#include "ops/blocks.h"
#include "ops/device_ops.h"
#include "ops/element_loops.h"
#include "ops/operands.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock::ops {
namespace {

[[noreturn]] void throw_no_meaning(std::string_view operation, const DType& dtype) {
  throw Error(ErrorCode::kUnsupported,
              core::format("{} has no meaning for {}; convert it with to()", operation, dtype.name()));
}

DType result_of(BinaryOp op, const DType& common) { return op >= BinaryOp::kEqual ? DType::boolean : common; }

bool is_bool(const Operand& operand) {
  if (operand.tensor() == nullptr) return operand.number().kind() == Scalar::Kind::kBool;
  return operand.tensor()->dtype() == DType::boolean;
}

Side side_of(const Operand& operand, const DType& common, const DType& compute, bool exact) {
  if (operand.tensor() == nullptr) return {operand.number().to_tensor(), exact ? compute.code() : common.code()};
  const bool single = exact && operand.tensor()->rank() == 0;
  return {*operand.tensor(), single ? compute.code() : common.code()};
}

void require_same_device(std::string_view operation, const Operand& a, const Operand& b) {
  if (a.tensor() != nullptr) require_defined(operation, {"a", *a.tensor()});
  if (b.tensor() != nullptr) require_defined(operation, {"b", *b.tensor()});
  if (a.tensor() == nullptr || b.tensor() == nullptr) return;
  const auto goes_everywhere = [](const Tensor& tensor) {
    return tensor.rank() == 0 && tensor.device().type == DeviceType::kCpu;
  };
  if (goes_everywhere(*a.tensor()) || goes_everywhere(*b.tensor())) return;
  const std::array<Argument, 2> arguments = {{{"a", *a.tensor()}, {"b", *b.tensor()}}};
  ops::require_same_device(operation, arguments);
}

/// The device that one of them is on, if any.
Device device_of(const Side& left, const Side& right) {
  return on_host(left.tensor) ? right.tensor.device() : left.tensor.device();
}

void binary_on_host(BinaryLoop loop, DType::Code computed, const Side& left, const Side& right, DType::Code compute,
                    const Tensor& out) {
  for_each_range(out.numel(), [&](std::int64_t begin, std::int64_t end) {
    BlockReader from_left(left.tensor, out.shape(), left.by_way_of, compute);
    BlockReader from_right(right.tensor, out.shape(), right.by_way_of, compute);
    BlockWriter to(out, computed);
    for_each_block(begin, end, [&](std::int64_t first, std::size_t count) {
      const std::byte* const x = from_left.read(first, count);
      const std::byte* const y = from_right.read(first, count);
      to.write(first, count, [&](std::byte* place) { loop(x, y, place, count); });
    });
  });
}

void unary_on_host(UnaryLoop loop, DType::Code computed, const Side& side, DType::Code compute, const Tensor& out) {
  for_each_range(out.numel(), [&](std::int64_t begin, std::int64_t end) {
    BlockReader from(side.tensor, out.shape(), side.by_way_of, compute);
    BlockWriter to(out, computed);
    for_each_block(begin, end, [&](std::int64_t first, std::size_t count) {
      const std::byte* const x = from.read(first, count);
      to.write(first, count, [&](std::byte* place) { loop(x, place, count); });
    });
  });
}

/// `op` of each pair of elements, broadcast and promoted; `name` is the operation's in messages, a string literal.
Tensor binary(BinaryOp op, std::string_view name, const Operand& a, const Operand& b) {
  require_same_device(name, a, b);
  const DType common = op == BinaryOp::kDivide ? floating_type(result_type(a, b)) : result_type(a, b);
  const DType compute = compute_type(common);
  const BinaryLoop loop = binary_loop(op, compute.code());
  if (op == BinaryOp::kSubtract && (is_bool(a) || is_bool(b))) throw_no_meaning(name, DType::boolean);
  if (loop == nullptr) throw_no_meaning(name, common);
  // As PyTorch: of a product or quotient of halves, a divisor or factor without dimensions is not rounded to a half.
  // Nor is a number that is divided, of whose quotient PyTorch rounds the reciprocal instead.
  const bool keeps_number = op == BinaryOp::kMultiply || op == BinaryOp::kDivide;
  const bool left_number = keeps_number && a.tensor() == nullptr;
  const Side left = side_of(a, common, compute, left_number);
  const Side right = side_of(b, common, compute, keeps_number);
  const Shape shape = broadcast_shapes(left.tensor.shape(), right.tensor.shape());
  const DType result = result_of(op, common);
  const Device device = device_of(left, right);
  require_real_on_device(name, common, device);
  if (device.type != DeviceType::kCpu) {
    return binary_on_device(*launcher_for(device), op, {left, right}, shape, compute, result, device);
  }
  Tensor out = Tensor::empty(shape, result);
  const DType::Code computed = op >= BinaryOp::kEqual ? DType::Code::kUInt8 : compute.code();
  if (out.numel() > 0) binary_on_host(loop, computed, left, right, compute.code(), out);
  return out;
}

Tensor unary(UnaryOp op, std::string_view name, const Tensor& tensor) {
  require_defined(name, {"the argument", tensor});
  require_numeric(tensor.dtype(), name.data());
  const DType common = op >= UnaryOp::kExp ? floating_type(tensor.dtype()) : tensor.dtype();
  const DType compute = compute_type(common);
  const UnaryLoop loop = unary_loop(op, compute.code());
  if (loop == nullptr || common == DType::boolean) throw_no_meaning(name, tensor.dtype());
  require_real_on_device(name, common, tensor.device());
  const bool to_real = op == UnaryOp::kAbs;
  const DType result = to_real ? real_type(common) : common;
  const Side side{tensor, common.code()};
  if (!on_host(tensor)) return unary_on_device(*launcher_for(tensor.device()), op, side, compute, result);
  Tensor out = Tensor::empty(tensor.shape(), result);
  const DType::Code computed = to_real ? real_type(compute).code() : compute.code();
  if (out.numel() > 0) unary_on_host(loop, computed, side, compute.code(), out);
  return out;
}

}  // namespace
}  // namespace penstock::ops

namespace penstock {

using ops::BinaryOp;
using ops::UnaryOp;

Tensor operator+(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kAdd, "add", a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kSubtract, "sub", a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kMultiply, "mul", a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kDivide, "div", a, b); }
Tensor operator==(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kEqual, "eq", a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kNotEqual, "ne", a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kLess, "lt", a, b); }
Tensor operator<=(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kLessEqual, "le", a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kLess, "gt", b, a); }
Tensor operator>=(const Operand& a, const Operand& b) { return ops::binary(BinaryOp::kLessEqual, "ge", b, a); }

Tensor operator-(const Tensor& tensor) { return ops::unary(UnaryOp::kNegate, "neg", tensor); }
Tensor exp(const Tensor& tensor) { return ops::unary(UnaryOp::kExp, "exp", tensor); }
Tensor log(const Tensor& tensor) { return ops::unary(UnaryOp::kLog, "log", tensor); }
Tensor sqrt(const Tensor& tensor) { return ops::unary(UnaryOp::kSqrt, "sqrt", tensor); }
Tensor tanh(const Tensor& tensor) { return ops::unary(UnaryOp::kTanh, "tanh", tensor); }
Tensor relu(const Tensor& tensor) { return ops::unary(UnaryOp::kRelu, "relu", tensor); }
Tensor abs(const Tensor& tensor) { return ops::unary(UnaryOp::kAbs, "abs", tensor); }

Tensor Scalar::to_tensor() const {
  switch (kind_) {
    case Kind::kBool:
      return Tensor::of<bool>({integer_ != 0}).reshape({});
    case Kind::kInteger:
      return Tensor::of<std::int64_t>({integer_}).reshape({});
    case Kind::kUnsigned:
      return Tensor::of<std::uint64_t>({static_cast<std::uint64_t>(integer_)}).reshape({});
    case Kind::kReal:
      return Tensor::of<double>({real_.real()}).reshape({});
    default:
      return Tensor::of<std::complex<double>>({real_}).reshape({});
  }
}

}  // namespace penstock
