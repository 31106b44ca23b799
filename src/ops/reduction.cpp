#include "ops/reduction.h"

#include <array>
#include <vector>

#include "core/format.h"
#include "ops/operands.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

using Marks = std::array<bool, Shape::kMaxRank>;

Marks marked(std::span<const std::int64_t> dims, std::size_t rank, std::string_view operation) {
  Marks reduced{};
  if (dims.empty()) reduced.fill(true);
  for (const std::int64_t dim : dims) {
    bool& mark = reduced[dimension_of(dim, rank)];
    if (mark) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("{} over dimension {} twice; name it once", operation, dim));
    }
    mark = true;
  }
  return reduced;
}

}  // namespace

Reduction make_reduction(const Tensor& tensor, std::span<const std::int64_t> dims, bool keepdim,
                         std::string_view operation) {
  require_defined(operation, {"the argument", tensor});
  const std::size_t rank = tensor.rank();
  const Marks reduced = marked(dims, rank, operation);
  std::size_t after = rank;  // the dimensions behind the last reduced one
  while (after > 0 && !reduced[after - 1]) --after;
  // Where the kept ones behind lie closer together than the reduced ones, rows of them are added as wholes.
  const bool rows = after > 0 && after < rank && tensor.strides()[rank - 1] <= tensor.strides()[after - 1];
  Reduction out;
  std::vector<std::size_t> front;
  std::vector<std::size_t> middle;
  std::vector<std::size_t> back;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t size = tensor.shape()[d];
    const bool behind = rows && d >= after;
    (reduced[d] ? middle : behind ? back : front).push_back(d);
    (reduced[d] ? out.count : behind ? out.inner : out.outer) *= size;
    if (!reduced[d] || keepdim) out.result.push_back(reduced[d] ? 1 : size);
  }
  out.outer_rank = front.size();
  out.inner_rank = back.size();
  front.insert(front.end(), middle.begin(), middle.end());
  front.insert(front.end(), back.begin(), back.end());
  out.view = tensor.permute(front);
  return out;
}

}  // namespace penstock::ops
