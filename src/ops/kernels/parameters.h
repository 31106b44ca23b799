#pragma once

// What kernels are given, by value: one structure each. Sizes are in elements, steps and strides in bytes unless they
// say otherwise. Memory is the device's and aligned to its elements.

#include <cstddef>
#include <cstdint>

#include "ops/element_loops.h"
#include "ops/philox.h"
#include "ops/reduction_order.h"
#include "penstock/dtype.h"

namespace penstock::ops {

// Compiled kernels know the codes by number.
static_assert(static_cast<int>(DType::Code::kBool) == 0 && static_cast<int>(DType::Code::kInt64) == 8);
static_assert(static_cast<int>(DType::Code::kFloat64) == 12 && static_cast<int>(DType::Code::kFloat8E8M0FNU) == 20);

/// Dimensions that remain when those that continue each other are one; more are refused.
inline constexpr unsigned kKernelDims = 8;

/// `count` elements in C order over `sizes`; how far apart they lie is said elsewhere.
struct KernelShape {
  std::uint64_t count;
  unsigned rank;
  std::int64_t sizes[kKernelDims];
};
struct KernelSteps {
  std::int64_t steps[kKernelDims];
};

/// Writes `width` bytes of `value` to each of `count` elements.
struct FillKernel {
  std::uint64_t count;
  std::byte* to;
  unsigned width;
  std::uint64_t value[2];
};

/// Element i is start + i * step, in int64 or double.
struct RangeKernel {
  std::uint64_t count;
  std::byte* to;
  DType::Code type;
  bool integers;
  std::int64_t integer_start;
  std::int64_t integer_step;
  double real_start;
  double real_step;
};

enum class RandomKind : std::uint8_t { kFloats, kDoubles, kIntegers };
/// `count` blocks of the stream make `elements` elements.
struct RandomKernel {
  std::uint64_t count;
  std::uint64_t elements;
  std::byte* to;
  DType::Code type;
  RandomKind kind;
  Draw draw;
  int bits;
  std::uint64_t seed;
  std::uint64_t first_block;
  std::int64_t low;
  std::uint64_t range;
};

/// Copies or converts; a copy is of elements `width` bytes wide.
struct MoveKernel {
  KernelShape shape;
  const std::byte* from;
  std::byte* to;
  KernelSteps from_steps;
  KernelSteps to_steps;
  DType::Code from_type;
  DType::Code to_type;
  unsigned width;
};

/// An operand of arithmetic: memory, or one number where `from` is null. Elements are converted to `by_way_of` and then
/// to the type that is computed in.
struct KernelOperand {
  const std::byte* from;
  KernelSteps steps;
  DType::Code type;
  DType::Code by_way_of;
  std::int64_t integer;  ///< the number, when integers are computed with
  double real;           ///< when floats are
};

/// Results are contiguous.
struct BinaryKernel {
  KernelShape shape;
  KernelOperand a;
  KernelOperand b;
  std::byte* to;
  DType::Code compute;
  DType::Code result;
  BinaryOp op;
};
struct UnaryKernel {
  KernelShape shape;
  KernelOperand a;
  std::byte* to;
  DType::Code compute;
  DType::Code result;
  UnaryOp op;
};

/// One pass of a reduction. Element r of result (o, c) lies at o, r and c times their strides. Chunks of kChunk
/// elements are reduced by `lanes` threads each; partial results lie chunk by chunk, result by result, lane by lane.
struct ReduceKernel {
  std::uint64_t count;
  const std::byte* from;
  const std::int64_t* from_indices;  ///< of earlier passes' candidates; null in the first
  DType::Code from_type;
  DType::Code type;  ///< that is reduced in
  std::int64_t outer;
  std::int64_t elements;
  std::int64_t inner;
  std::int64_t outer_stride;
  std::int64_t element_stride;
  std::int64_t inner_stride;
  std::int64_t lanes;
  bool lanes_together;  ///< neighbouring threads are lanes, else results
  bool smallest;        ///< of extremes
  std::byte* values;
  std::int64_t* indices;  ///< of extremes
};

/// Joins the lanes of `count` chunks, in place, and writes their results.
struct JoinKernel {
  std::uint64_t count;
  DType::Code type;
  std::int64_t lanes;
  bool smallest;
  std::byte* values;
  std::int64_t* indices;
  std::byte* to_values;
  std::int64_t* to_indices;
};

/// Matrices of a batch, of float32, float64 or int64; strides in elements. Each thread computes
/// a square of kMatmulTile; count is the number of them.
inline constexpr int kMatmulTile = 4;
struct MatmulKernel {
  std::uint64_t count;
  KernelShape batch;
  const std::byte* a;
  const std::byte* b;
  std::byte* to;
  KernelSteps a_batch;
  KernelSteps b_batch;
  DType::Code type;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
  std::int64_t a_row_stride;
  std::int64_t a_column_stride;
  std::int64_t b_row_stride;
  std::int64_t b_column_stride;
};

/// Copies `run` units of `width` bytes for each chosen entry.
struct SelectKernel {
  std::uint64_t count;
  const std::byte* from;
  const std::int64_t* indices;
  std::byte* to;
  unsigned width;
  std::int64_t size;    ///< entries of the dimension
  std::int64_t chosen;  ///< indices
  std::int64_t run;
};

}  // namespace penstock::ops
