#pragma once

// Operations by kernels: what the files of the same names do in host memory. Tensors are on the launcher's device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/element_loops.h"
#include "ops/launcher.h"
#include "ops/philox.h"
#include "ops/reduction.h"
#include "penstock/ops.h"

namespace penstock::ops {

/// An operand of arithmetic and the type it passes through on its way to the one that is computed in. A tensor without
/// dimensions may be in host memory.
struct Side {
  Tensor tensor;
  DType::Code by_way_of;
};

/// What BinaryOp gives for each pair, of type `result` and shape `shape`, which both sides broadcast to. `compute` is
/// real, because devices compute with real numbers alone (require_real_on_device).
Tensor binary_on_device(Launcher& launcher, BinaryOp op, const std::array<Side, 2>& given, const Shape& shape,
                        const DType& compute, const DType& result, Device device);
Tensor unary_on_device(Launcher& launcher, UnaryOp op, const Side& given, const DType& compute, const DType& result);

/// Same dtype and shape, any strides and alignment.
void copy_on_device(Launcher& launcher, const Tensor& from, const Tensor& to);
/// Numeric types and the same shape.
void cast_on_device(Launcher& launcher, const Tensor& from, const Tensor& to);
void fill_on_device(Launcher& launcher, const Tensor& to, std::span<const std::byte> value);

Tensor sum_on_device(Launcher& launcher, const Reduction& reduction, const DType& type);
ExtremeResults extremes_on_device(Launcher& launcher, const Reduction& reduction, Extreme extreme);

/// Products of the matrices in the last two dimensions, of float32, float64 or int64, into contiguous `out` of shape
/// (batch, rows, columns); a's and b's other dimensions broadcast to `batch`.
void multiply_on_device(Launcher& launcher, const Tensor& a, const Tensor& b, const Shape& batch, const Tensor& out);

/// The same products by the device's own library, where the launcher multiplies() the operands' type: halves
/// too. False where it refuses, and what is in `out` does not count.
bool multiply_by_library(Launcher& launcher, const Tensor& a, const Tensor& b, const Shape& batch, const Tensor& out);

/// `from` is contiguous; `indices` are checked and in the device's memory.
void select_on_device(Launcher& launcher, const Tensor& from, std::size_t dim, const Tensor& indices,
                      const Tensor& out);

/// Into contiguous tensors, element i being start + i * step.
void range_on_device(Launcher& launcher, const Tensor& out, std::int64_t start, std::int64_t step);
void range_on_device(Launcher& launcher, const Tensor& out, double start, double step);

/// What is drawn of a generator's stream from `first_block` on.
struct Drawing {
  std::uint64_t seed;
  std::uint64_t first_block;
};
void draw_floats_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, Draw kind, int bits);
void draw_doubles_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, Draw kind);
void draw_integers_on_device(Launcher& launcher, const Tensor& out, Drawing drawing, std::int64_t low,
                             std::uint64_t range);

}  // namespace penstock::ops
