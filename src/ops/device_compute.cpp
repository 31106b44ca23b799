// Arithmetic and products by kernels. A number in host memory goes with the parameters of the launch.

#include "ops/convert.h"
#include "ops/device_ops.h"
#include "ops/kernel_layout.h"

namespace penstock::ops {
namespace {

/// The number in host memory, in the type to compute in.
void set_number(KernelOperand& out, const Side& side, const DType& compute) {
  const Tensor number = side.tensor.to(DType(side.by_way_of)).to(compute);
  if (compute.is_floating()) {
    out.real = number.item<double>();
  } else {
    out.integer = number.item<std::int64_t>();
  }
}

KernelOperand operand_of(const Side& side, const KernelSteps& steps, const DType& compute, bool number) {
  KernelOperand out{};
  out.type = side.tensor.dtype().code();
  // What is bool or uint8 to compute in is 0 or 1 already; other types keep to their own width.
  out.by_way_of = side.by_way_of;
  out.steps = steps;
  if (number) {
    set_number(out, side, compute);
  } else {
    out.from = side.tensor.data();
  }
  return out;
}

bool is_number(const Tensor& tensor, Device device) { return tensor.rank() == 0 && tensor.device() != device; }

}  // namespace

Tensor binary_on_device(Launcher& launcher, BinaryOp op, const std::array<Side, 2>& given, const Shape& shape,
                        const DType& compute, const DType& result, Device device) {
  Tensor out = Tensor::empty(shape, result, device);
  if (out.numel() == 0) return out;
  std::array<Side, 2> sides = given;
  std::array<Tensor, 2> tensors;
  std::vector<Tensor> reads;
  std::array<bool, 2> numbers{};
  for (std::size_t i = 0; i < 2; ++i) {
    numbers[i] = is_number(sides[i].tensor, device);
    if (!numbers[i]) sides[i].tensor = aligned_for_kernels(launcher, sides[i].tensor);
    if (!numbers[i]) reads.push_back(sides[i].tensor);
    tensors[i] = sides[i].tensor;
  }
  const KernelLayout layout = make_kernel_layout(shape, tensors);
  const BinaryKernel parameters{layout.shape,
                                operand_of(sides[0], layout.steps[0], compute, numbers[0]),
                                operand_of(sides[1], layout.steps[1], compute, numbers[1]),
                                out.data(),
                                compute.code(),
                                result.code(),
                                op};
  launcher.launch("arithmetic/penstock_binary", &parameters, layout.shape.count, reads, std::span(&out, 1));
  return out;
}

Tensor unary_on_device(Launcher& launcher, UnaryOp op, const Side& given, const DType& compute, const DType& result) {
  const Device device = given.tensor.device();
  Tensor out = Tensor::empty(given.tensor.shape(), result, device);
  if (out.numel() == 0) return out;
  const Side side{aligned_for_kernels(launcher, given.tensor), given.by_way_of};
  const KernelLayout layout = make_kernel_layout(out.shape(), std::span(&side.tensor, 1));
  const UnaryKernel parameters{
      layout.shape, operand_of(side, layout.steps[0], compute, false), out.data(), compute.code(), result.code(), op};
  launcher.launch("arithmetic/penstock_unary", &parameters, layout.shape.count, std::span(&side.tensor, 1),
                  std::span(&out, 1));
  return out;
}

void multiply_on_device(Launcher& launcher, const Tensor& a, const Tensor& b, const Shape& batch, const Tensor& out) {
  const std::array<Tensor, 2> operands = {aligned_for_kernels(launcher, a), aligned_for_kernels(launcher, b)};
  const KernelLayout layout = make_batch_layout(batch, operands);
  const auto tiles = [](std::int64_t size) { return (size + kMatmulTile - 1) / kMatmulTile; };
  MatmulKernel parameters{};
  parameters.batch = layout.shape;
  parameters.a_batch = layout.steps[0];
  parameters.b_batch = layout.steps[1];
  parameters.a = operands[0].data();
  parameters.b = operands[1].data();
  parameters.to = out.data();
  parameters.type = out.dtype().code();
  parameters.rows = a.shape()[a.rank() - 2];
  parameters.depth = a.shape()[a.rank() - 1];
  parameters.columns = b.shape()[b.rank() - 1];
  parameters.a_row_stride = operands[0].strides()[a.rank() - 2];
  parameters.a_column_stride = operands[0].strides()[a.rank() - 1];
  parameters.b_row_stride = operands[1].strides()[b.rank() - 2];
  parameters.b_column_stride = operands[1].strides()[b.rank() - 1];
  parameters.count =
      layout.shape.count * static_cast<std::uint64_t>(tiles(parameters.rows) * tiles(parameters.columns));
  launcher.launch("matmul/penstock_matmul", &parameters, parameters.count, operands, std::span(&out, 1));
}

}  // namespace penstock::ops
