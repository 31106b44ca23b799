// A reduction on a device takes several passes. The first one leaves one candidate for each chunk of each result, and
// each later pass reduces the candidates of the one before, until every result has one. So chunks can run in parallel
// without any thread waiting for another.

#include <algorithm>
#include <bit>
#include <optional>

#include "ops/device_ops.h"
#include "ops/kernel_layout.h"

namespace penstock::ops {
namespace {

/// What one pass reads: results of `outer` times `inner` and their elements, each at its stride.
struct Pass {
  Tensor values;
  Tensor indices;  ///< of candidates; undefined in the first pass
  std::int64_t outer;
  std::int64_t elements;
  std::int64_t inner;
  std::int64_t outer_stride;
  std::int64_t element_stride;
  std::int64_t inner_stride;
};

/// The step in bytes along dimensions [first, last) taken as one, if they continue each other.
std::optional<std::int64_t> joint_stride(const Tensor& tensor, std::size_t first, std::size_t last) {
  std::int64_t step = 0;
  std::int64_t next = 0;
  for (std::size_t d = last; d-- > first;) {
    if (tensor.shape()[d] == 1) continue;
    if (step == 0) {
      step = tensor.strides()[d];
    } else if (tensor.strides()[d] != next) {
      return std::nullopt;
    }
    next = tensor.strides()[d] * tensor.shape()[d];
  }
  return step * static_cast<std::int64_t>(tensor.dtype().itemsize());
}

Pass first_pass(Launcher& launcher, const Reduction& reduction) {
  const auto strides_of = [&](const Tensor& view) -> std::optional<Pass> {
    const std::size_t middle = reduction.outer_rank;
    const std::size_t back = view.rank() - reduction.inner_rank;
    const auto outer = joint_stride(view, 0, middle);
    const auto element = joint_stride(view, middle, back);
    const auto inner = joint_stride(view, back, view.rank());
    if (!outer || !element || !inner) return std::nullopt;
    return Pass{view, {}, reduction.outer, reduction.count, reduction.inner, *outer, *element, *inner};
  };
  const Tensor view = aligned_for_kernels(launcher, reduction.view);
  if (const std::optional<Pass> pass = strides_of(view)) return *pass;
  const Tensor copy = Tensor::empty(view.shape(), view.dtype(), view.device());
  copy_on_device(launcher, view, copy);
  return strides_of(copy).value();
}

/// The pass over what an earlier one left: `chunks` candidates of each of `results`.
Pass later_pass(const Tensor& values, const Tensor& indices, std::int64_t chunks, std::int64_t results) {
  const auto width = static_cast<std::int64_t>(values.dtype().itemsize());
  return {values, indices, 1, chunks, results, 0, results * width, width};
}

std::int64_t chunks_of(const Pass& pass) { return (pass.elements + kChunk - 1) / kChunk; }

ReduceKernel lanes_kernel(const Pass& pass, const DType& type, const Tensor& lanes) {
  ReduceKernel out{};
  out.from = pass.values.data();
  out.from_type = pass.values.dtype().code();
  out.type = type.code();
  out.outer = pass.outer;
  out.elements = pass.elements;
  out.inner = pass.inner;
  out.outer_stride = pass.outer_stride;
  out.element_stride = pass.element_stride;
  out.inner_stride = pass.inner_stride;
  out.lanes = lanes.shape()[1];
  out.lanes_together = pass.inner == 1;
  out.values = lanes.data();
  out.count = static_cast<std::uint64_t>(lanes.numel());
  return out;
}

/// Lanes that get an element.
std::int64_t lanes_of(const Pass& pass) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(pass.elements, kLanes))));
}

/// One value for each lane of each chunk of each result.
Tensor lanes_for(const Pass& pass, const DType& type) {
  return Tensor::empty({chunks_of(pass) * pass.outer * pass.inner, lanes_of(pass)}, type, pass.values.device());
}

Tensor sum_chunks(Launcher& launcher, const Pass& pass, const DType& type) {
  const Tensor lanes = lanes_for(pass, type);
  const ReduceKernel apart = lanes_kernel(pass, type, lanes);
  launcher.launch("reduce/penstock_sum_lanes", &apart, apart.count, std::span(&pass.values, 1), std::span(&lanes, 1));
  Tensor sums = Tensor::empty({lanes.shape()[0]}, type, lanes.device());
  JoinKernel join{};
  join.count = static_cast<std::uint64_t>(sums.numel());
  join.type = type.code();
  join.lanes = apart.lanes;
  join.values = lanes.data();
  join.to_values = sums.data();
  const std::array<Tensor, 2> writes = {lanes, sums};
  launcher.launch("reduce/penstock_join_sums", &join, join.count, {}, writes);
  return sums;
}

ExtremeResults search_chunks(Launcher& launcher, const Pass& pass, const DType& type, bool smallest) {
  const Tensor lanes = lanes_for(pass, type);
  const Tensor places = Tensor::empty(lanes.shape(), DType::int64, lanes.device());
  ReduceKernel apart = lanes_kernel(pass, type, lanes);
  apart.smallest = smallest;
  apart.indices = reinterpret_cast<std::int64_t*>(places.data());
  std::vector<Tensor> reads = {pass.values};
  if (pass.indices.defined()) {
    apart.from_indices = reinterpret_cast<const std::int64_t*>(pass.indices.data());
    reads.push_back(pass.indices);
  }
  const std::array<Tensor, 2> scratch = {lanes, places};
  launcher.launch("reduce/penstock_extreme_lanes", &apart, apart.count, reads, scratch);
  const std::array<Tensor, 2> out = {Tensor::empty({lanes.shape()[0]}, type, lanes.device()),
                                     Tensor::empty({lanes.shape()[0]}, DType::int64, lanes.device())};
  JoinKernel join{};
  join.count = static_cast<std::uint64_t>(out[0].numel());
  join.type = type.code();
  join.lanes = apart.lanes;
  join.smallest = smallest;
  join.values = lanes.data();
  join.indices = apart.indices;
  join.to_values = out[0].data();
  join.to_indices = reinterpret_cast<std::int64_t*>(out[1].data());
  launcher.launch("reduce/penstock_join_extremes", &join, join.count, scratch, out);
  return {out[0], out[1]};
}

/// The type that extremes are sought in.
DType search_type(const DType& dtype) {
  if (dtype == DType::float64 || dtype == DType::uint64) return dtype;
  return dtype.is_floating() ? DType::float32 : DType::int64;
}

}  // namespace

Tensor sum_on_device(Launcher& launcher, const Reduction& reduction, const DType& type) {
  const Device device = reduction.view.device();
  if (reduction.view.numel() == 0) return Tensor::zeros(reduction.result, type, device);
  Pass pass = first_pass(launcher, reduction);
  while (true) {
    const Tensor sums = sum_chunks(launcher, pass, type);
    if (chunks_of(pass) == 1) return sums.reshape(reduction.result);
    pass = later_pass(sums, {}, chunks_of(pass), reduction.results());
  }
}

ExtremeResults extremes_on_device(Launcher& launcher, const Reduction& reduction, Extreme extreme) {
  const DType& dtype = reduction.view.dtype();
  const Device device = reduction.view.device();
  if (reduction.results() == 0) {
    return {Tensor::empty(reduction.result, dtype, device), Tensor::empty(reduction.result, DType::int64, device)};
  }
  Pass pass = first_pass(launcher, reduction);
  while (true) {
    const ExtremeResults found = search_chunks(launcher, pass, search_type(dtype), extreme == Extreme::kMin);
    if (chunks_of(pass) > 1) {
      pass = later_pass(found.values, found.indices, chunks_of(pass), reduction.results());
      continue;
    }
    const Tensor values = Tensor::empty(found.values.shape(), dtype, device);
    cast_on_device(launcher, found.values, values);
    return {values.reshape(reduction.result), found.indices.reshape(reduction.result)};
  }
}

}  // namespace penstock::ops
