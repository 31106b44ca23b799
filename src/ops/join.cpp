// cat, stack and index_select. The result's memory is taken once, and each tensor is copied or cast straight into its
// part of it. index_select copies whole runs of the dimensions behind the chosen one.

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/checked.h"
#include "core/format.h"
#include "ops/blocks.h"
#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/operands.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

void require_one_device(std::string_view operation, std::span<const Tensor> tensors) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) names.push_back(core::format("tensors[{}]", i));
  std::vector<ops::Argument> arguments;
  for (std::size_t i = 0; i < tensors.size(); ++i) arguments.push_back({names[i], tensors[i]});
  ops::require_same_device(operation, arguments);
}

/// The promoted type; tensors without dimensions count less, as in arithmetic.
DType common_type(std::span<const Tensor> tensors) {
  Tensor common = tensors.front();
  for (const Tensor& tensor : tensors.subspan(1)) {
    if (tensor.dtype() != common.dtype()) common = Tensor::empty({0}, result_type(common, tensor));
  }
  return common.dtype();
}

void require_some(std::span<const Tensor> tensors, std::string_view operation) {
  if (!tensors.empty()) return;
  throw Error(ErrorCode::kInvalidArgument, core::format("{} of no tensors: one or more were expected", operation));
}

/// PyTorch's old rule: a vector of size 0 goes with every shape.
bool is_skipped(const Tensor& tensor) { return tensor.rank() == 1 && tensor.numel() == 0; }

void require_fits(const Tensor& tensor, const Shape& first, std::size_t dim, std::size_t index) {
  bool fits = tensor.rank() == first.rank();
  for (std::size_t d = 0; fits && d < first.rank(); ++d) fits = d == dim || tensor.shape()[d] == first[d];
  if (fits) return;
  throw Error(ErrorCode::kShapeMismatch,
              core::format("cat along dimension {}: tensors[{}] has shape {}, expected {} elsewhere than there", dim,
                           index, tensor.shape().to_string(), first.to_string()));
}

/// Copies `tensors` into consecutive parts of `out` along `dim`.
void place(std::span<const Tensor> tensors, std::size_t dim, const Tensor& out) {
  std::int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.rank() != out.rank()) continue;
    const std::int64_t end = at + tensor.shape()[dim];
    const Tensor part = out.slice(dim, at, end);
    if (tensor.dtype() == out.dtype()) {
      ops::copy(tensor, part);
    } else {
      ops::cast(tensor, part);
    }
    at = end;
  }
}

/// `index` as int64 in host memory.
Tensor checked_indices(const Tensor& index, std::int64_t size) {
  if (index.dtype() != DType::int64 && index.dtype() != DType::int32) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("index_select by {}: int32 or int64 was expected", index.dtype().name()));
  }
  if (index.rank() > 1) {
    throw Error(
        ErrorCode::kShapeMismatch,
        core::format("index_select by an index of shape {}: one dimension was expected", index.shape().to_string()));
  }
  Tensor host = index.to(Device{}).to(DType::int64).clone();  // aligned
  const auto indices = host.values<const std::int64_t>();
  const auto outside =
      std::find_if(indices.begin(), indices.end(), [size](std::int64_t i) { return i < 0 || i >= size; });
  if (outside != indices.end()) {
    throw Error(ErrorCode::kIndexOutOfRange, core::format("index_select of {} at position {}: expected 0 to {}",
                                                          *outside, outside - indices.begin(), size - 1));
  }
  return host;
}

/// Copies whole runs of the dimensions behind the chosen one.
void select_runs(const Tensor& from, std::size_t dim, std::span<const std::int64_t> indices, const Tensor& out) {
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < dim; ++d) outer *= from.shape()[d];
  const std::int64_t size = from.shape()[dim];
  const auto chosen = static_cast<std::int64_t>(indices.size());
  const std::size_t run = from.nbytes() / static_cast<std::size_t>(outer * size);
  ops::for_each_range(outer * chosen, static_cast<std::int64_t>(run / 4 + 4), 1,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          const std::int64_t source = i / chosen * size + indices[static_cast<std::size_t>(i % chosen)];
                          std::memcpy(out.data() + static_cast<std::size_t>(i) * run,
                                      from.data() + static_cast<std::size_t>(source) * run, run);
                        }
                      });
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, Integer dim) {
  require_some(tensors, "cat");
  require_one_device("cat", tensors);
  const auto shown = std::find_if_not(tensors.begin(), tensors.end(), is_skipped);
  const Tensor& first = shown == tensors.end() ? tensors.front() : *shown;
  if (first.rank() == 0) {
    throw Error(ErrorCode::kShapeMismatch, "cat of tensors without dimensions; use stack");
  }
  const std::size_t along = ops::dimension_of(dim, first.rank());
  Shape shape = first.shape();
  shape[along] = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (is_skipped(tensors[i])) continue;
    require_fits(tensors[i], first.shape(), along, i);
    shape[along] = core::checked_add(shape[along], tensors[i].shape()[along], "the size of what cat makes");
  }
  Tensor out = Tensor::empty(shape, common_type(tensors), first.device());
  place(tensors, along, out);
  return out;
}

Tensor stack(std::span<const Tensor> tensors, Integer dim) {
  require_some(tensors, "stack");
  require_one_device("stack", tensors);
  const Shape& first = tensors.front().shape();
  const std::size_t along = ops::dimension_of(dim, first.rank() + 1);
  Shape one;
  for (std::size_t d = 0; d <= first.rank(); ++d) one.push_back(d == along ? 1 : first[d < along ? d : d - 1]);
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shape() != first) {
      throw Error(ErrorCode::kShapeMismatch,
                  core::format("stack: tensors[{}] has shape {}, tensors[0] has {}; equal shapes "
                               "were expected",
                               i, tensors[i].shape().to_string(), first.to_string()));
    }
    rows.push_back(tensors[i].reshape(one));
  }
  Shape shape = one;
  shape[along] = static_cast<std::int64_t>(tensors.size());
  Tensor out = Tensor::empty(shape, common_type(tensors), tensors.front().device());
  place(rows, along, out);
  return out;
}

Tensor index_select(const Tensor& tensor, Integer dim, const Tensor& index) {
  const std::array<ops::Argument, 2> arguments = {{{"tensor", tensor}, {"index", index}}};
  ops::require_same_device("index_select", arguments);
  const Tensor from = tensor.rank() == 0 ? tensor.reshape({1}) : tensor.contiguous();
  const std::size_t along = ops::dimension_of(dim, from.rank());
  const Tensor indices = checked_indices(index, from.shape()[along]);
  Shape shape = from.shape();
  shape[along] = indices.numel();
  Tensor out = Tensor::empty(shape, tensor.dtype(), tensor.device());
  if (out.nbytes() == 0) return out;
  if (ops::on_host(out)) {
    select_runs(from, along, indices.values<const std::int64_t>(), out);
  } else {
    ops::select_on_device(*ops::launcher_for(out.device()), from, along, indices.to(out.device()), out);
  }
  return out;
}

}  // namespace penstock
