// Copies, conversions, fills, selections, ranges and random numbers by kernels. Kernels move aligned units of 1, 2, 4,
// 8 or 16 bytes; elements of another width or alignment are moved as several smaller units. Complex numbers are
// converted part by part.

#include <algorithm>
#include <cstring>

#include "ops/device_ops.h"
#include "ops/kernel_layout.h"
#include "ops/promotion.h"

namespace penstock::ops {
namespace {

bool is_aligned(const Tensor& tensor, std::size_t width) {
  return reinterpret_cast<std::uintptr_t>(tensor.data()) % width == 0;
}

/// The same memory as units of `width` bytes, with a last dimension for those of an element.
Tensor in_units(const Tensor& tensor, std::size_t width) {
  const auto units = static_cast<std::int64_t>(tensor.dtype().itemsize() / width);
  Shape shape = tensor.shape();
  Strides strides = tensor.strides();
  for (std::size_t d = 0; d < strides.rank(); ++d) strides[d] *= units;
  shape.push_back(units);
  strides.push_back(1);
  constexpr std::array types = {DType::Code::kUInt8, DType::Code::kUInt16, DType::Code::kUInt32, DType::Code::kUInt64};
  const auto type =
      std::find_if(types.begin(), types.end(), [width](DType::Code t) { return DType(t).itemsize() == width; });
  return {tensor.buffer(), *type, shape, strides, tensor.byte_offset()};
}

bool has_width(std::size_t width) { return width == 1 || width == 2 || width == 4 || width == 8 || width == 16; }

/// The part of a complex tensor, with its type.
Tensor part_of(const Tensor& tensor, std::size_t part) {
  const DType type = real_type(tensor.dtype());
  Strides strides = tensor.strides();
  for (std::size_t d = 0; d < strides.rank(); ++d) strides[d] *= 2;
  return {tensor.buffer(), type, tensor.shape(), strides, tensor.byte_offset() + part * type.itemsize()};
}

void convert_reals(Launcher& launcher, const Tensor& source, const Tensor& to) {
  const Tensor from = aligned_for_kernels(launcher, source);
  const std::array<Tensor, 2> tensors = {from, to};
  const KernelLayout layout = make_kernel_layout(to.shape(), tensors);
  const MoveKernel parameters{layout.shape,    from.data(),         to.data(),         layout.steps[0],
                              layout.steps[1], from.dtype().code(), to.dtype().code(), 0};
  launcher.launch("move/penstock_convert", &parameters, layout.shape.count, std::span(tensors).first(1),
                  std::span(tensors).last(1));
}

/// One tensor of the shape of `like` that repeats what `value` holds.
Tensor repeated(const Tensor& value, const Shape& shape) {
  Strides strides = shape;
  for (std::size_t d = 0; d < strides.rank(); ++d) strides[d] = 0;
  return {value.buffer(), value.dtype(), shape, strides, value.byte_offset()};
}

}  // namespace

void copy_on_device(Launcher& launcher, const Tensor& from, const Tensor& to) {
  if (to.nbytes() == 0) return;
  const std::size_t width = to.dtype().itemsize();
  if (!has_width(width) || !is_aligned(from, width) || !is_aligned(to, width)) {
    const bool by_words = width % 8 == 0 && is_aligned(from, 8) && is_aligned(to, 8);
    return copy_on_device(launcher, in_units(from, by_words ? 8 : 1), in_units(to, by_words ? 8 : 1));
  }
  const std::array<Tensor, 2> tensors = {from, to};
  const KernelLayout layout = make_kernel_layout(to.shape(), tensors);
  const MoveKernel parameters{layout.shape,    from.data(),         to.data(),         layout.steps[0],
                              layout.steps[1], from.dtype().code(), to.dtype().code(), static_cast<unsigned>(width)};
  launcher.launch("move/penstock_copy", &parameters, layout.shape.count, std::span(tensors).first(1),
                  std::span(tensors).last(1));
}

void cast_on_device(Launcher& launcher, const Tensor& from, const Tensor& to) {
  if (to.numel() == 0) return;
  const bool from_complex = from.dtype().is_complex();
  const bool to_complex = to.dtype().is_complex();
  if (from.dtype() == to.dtype()) return copy_on_device(launcher, from, to);
  if (!from_complex && !to_complex) return convert_reals(launcher, from, to);
  if (to_complex) {
    convert_reals(launcher, from_complex ? part_of(from, 0) : from, part_of(to, 0));
    if (from_complex) return convert_reals(launcher, part_of(from, 1), part_of(to, 1));
    const std::array<std::byte, 8> zero{};
    return fill_on_device(launcher, part_of(to, 1), std::span(zero).first(to.dtype().itemsize() / 2));
  }
  if (to.dtype() != DType::boolean) return convert_reals(launcher, part_of(from, 0), to);
  // True where either part is.
  std::array<Side, 2> sides;
  for (std::size_t part = 0; part < 2; ++part) {
    sides[part] = {Tensor::empty(from.shape(), DType::boolean, from.device()), DType::Code::kBool};
    convert_reals(launcher, part_of(from, part), sides[part].tensor);
  }
  copy_on_device(
      launcher,
      binary_on_device(launcher, BinaryOp::kAdd, sides, from.shape(), DType::uint8, DType::boolean, from.device()), to);
}

void fill_on_device(Launcher& launcher, const Tensor& to, std::span<const std::byte> value) {
  if (to.nbytes() == 0) return;
  if (!to.is_contiguous() || !has_width(value.size()) || !is_aligned(to, value.size())) {
    const Tensor bytes = Tensor::empty({static_cast<std::int64_t>(value.size())}, DType::uint8, to.device());
    for (std::size_t i = 0; i < value.size(); ++i) {
      fill_on_device(launcher, bytes[static_cast<std::int64_t>(i)], value.subspan(i, 1));
    }
    return copy_on_device(launcher, repeated(Tensor(bytes.buffer(), to.dtype(), Shape()), to.shape()), to);
  }
  FillKernel parameters{static_cast<std::uint64_t>(to.numel()), to.data(), static_cast<unsigned>(value.size()), {}};
  std::memcpy(parameters.value, value.data(), value.size());
  launcher.launch("move/penstock_fill", &parameters, parameters.count, {}, std::span(&to, 1));
}

void select_on_device(Launcher& launcher, const Tensor& from, std::size_t dim, const Tensor& indices,
                      const Tensor& out) {
  std::size_t run = from.dtype().itemsize();
  for (std::size_t d = dim + 1; d < from.rank(); ++d) run *= static_cast<std::size_t>(from.shape()[d]);
  std::size_t width = 8;  // the widest unit that a run is made of and both memories are aligned to
  while (run % width != 0 || !is_aligned(from, width) || !is_aligned(out, width)) width /= 2;
  const SelectKernel parameters{static_cast<std::uint64_t>(out.nbytes() / width),
                                from.data(),
                                reinterpret_cast<const std::int64_t*>(indices.data()),
                                out.data(),
                                static_cast<unsigned>(width),
                                from.shape()[dim],
                                indices.numel(),
                                static_cast<std::int64_t>(run / width)};
  const std::array<Tensor, 2> reads = {from, indices};
  launcher.launch("move/penstock_select", &parameters, parameters.count, reads, std::span(&out, 1));
}

void range_on_device(Launcher& launcher, const Tensor& out, std::int64_t start, std::int64_t step) {
  const auto count = static_cast<std::uint64_t>(out.numel());
  const RangeKernel parameters{count, out.data(), out.dtype().code(), true, start, step, 0, 0};
  launcher.launch("move/penstock_range", &parameters, count, {}, std::span(&out, 1));
}

void range_on_device(Launcher& launcher, const Tensor& out, double start, double step) {
  const auto count = static_cast<std::uint64_t>(out.numel());
  const RangeKernel parameters{count, out.data(), out.dtype().code(), false, 0, 0, start, step};
  launcher.launch("move/penstock_range", &parameters, count, {}, std::span(&out, 1));
}

namespace {

void draw(Launcher& launcher, const Tensor& out, RandomKernel parameters, std::uint64_t per_block) {
  parameters.elements = static_cast<std::uint64_t>(out.numel());
  parameters.count = (parameters.elements + per_block - 1) / per_block;
  parameters.to = out.data();
  parameters.type = out.dtype().code();
  if (parameters.count > 0)
    launcher.launch("move/penstock_random", &parameters, parameters.count, {}, std::span(&out, 1));
}

RandomKernel random_kernel(RandomKind kind, Drawing drawing) {
  RandomKernel out{};
  out.kind = kind;
  out.seed = drawing.seed;
  out.first_block = drawing.first_block;
  return out;
}

}  // namespace

void draw_floats_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, Draw kind, int bits) {
  RandomKernel parameters = random_kernel(RandomKind::kFloats, drawing);
  parameters.draw = kind;
  parameters.bits = bits;
  draw(launcher, out, parameters, 4);
}

void draw_doubles_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, Draw kind) {
  RandomKernel parameters = random_kernel(RandomKind::kDoubles, drawing);
  parameters.draw = kind;
  draw(launcher, out, parameters, 2);
}

void draw_integers_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, std::int64_t low,
                             std::uint64_t range) {
  RandomKernel parameters = random_kernel(RandomKind::kIntegers, drawing);
  parameters.low = low;
  parameters.range = range;
  draw(launcher, out, parameters, 2);
}

}  // namespace penstock::ops
