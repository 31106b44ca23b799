#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/task_pool.h"
#include "ops/convert.h"
#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/loop_nest.h"
#include "ops/operands.h"
#include "ops/overflow.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

/// Elements that are gathered, converted and spread at a time where the memory is not contiguous.
constexpr std::int64_t kBlock = 16 * 1024;
constexpr std::int64_t kCastElementsPerThread = 1024 * 1024;

void require_numeric(const DType& dtype) {
  if (dtype.is_numeric()) return;
  throw Error(
      ErrorCode::kUnsupported,
      core::format("{} values cannot be converted: they are not bool, integer, float or complex", dtype.name()));
}

struct Pair {
  Tensor from;
  Tensor to;
};

/// Halves the longest dimension, so that blocks come near to cubes and each cache line is used by one block.
std::pair<Pair, Pair> halve(const Pair& pair) {
  const Shape& shape = pair.to.shape();
  const auto dim = static_cast<std::size_t>(std::max_element(shape.begin(), shape.end()) - shape.begin());
  const std::int64_t size = shape[dim];
  const std::int64_t middle = size / 2;
  return {{pair.from.slice(dim, 0, middle), pair.to.slice(dim, 0, middle)},
          {pair.from.slice(dim, middle, size), pair.to.slice(dim, middle, size)}};
}

Tensor flattened(const Tensor& tensor) {
  return {tensor.buffer(), tensor.dtype(), Shape{tensor.numel()}, Strides{1}, tensor.byte_offset()};
}

void require_no_overflow(const Tensor& from, const DType& to) {
  const DType::Code type = from.dtype().code();
  const auto count = static_cast<std::size_t>(from.numel());
  const std::size_t found = find_overflow(type, from.data(), to.code(), count);
  if (found == count) return;
  const double value = first_part(type, from.data() + found * from.dtype().itemsize());
  throw Error(ErrorCode::kInvalidArgument, overflow_message(type, value, to.code()));
}

void cast_contiguous(const Tensor& from, const Tensor& to, bool strict) {
  if (strict) require_no_overflow(from, to.dtype());
  convert(from.dtype().code(), from.data(), to.dtype().code(), to.data(), static_cast<std::size_t>(to.numel()));
}

void cast_pair(const Pair& pair, bool strict) {
  const bool gather = !pair.from.is_contiguous();
  const bool spread = !pair.to.is_contiguous();
  if (!gather && !spread) return cast_contiguous(pair.from, pair.to, strict);
  if (pair.to.numel() > kBlock) {
    const auto [first, second] = halve(pair);
    cast_pair(first, strict);
    cast_pair(second, strict);
    return;
  }
  const Tensor from = gather ? Tensor::empty(pair.from.shape(), pair.from.dtype()) : pair.from;
  const Tensor to = spread ? Tensor::empty(pair.to.shape(), pair.to.dtype()) : pair.to;
  if (gather) copy(pair.from, from);
  cast_contiguous(from, to, strict);
  if (spread) copy(to, pair.to);
}

}  // namespace

void cast(const Tensor& from, const Tensor& to, bool strict) {
  const std::array<Argument, 2> arguments = {{{"from", from}, {"to", to}}};
  require_same_device("converting", arguments);
  require_not_read_only(to, "converting");
  require_same_shape(from, to, "converting");
  require_numeric(from.dtype());
  require_numeric(to.dtype());
  if (from.dtype() == to.dtype()) return copy(from, to);
  if (to.numel() == 0) return;
  if (!on_host(to)) return cast_on_device(*launcher_for(to.device()), from, to);
  const auto wanted = static_cast<std::size_t>(to.numel() / kCastElementsPerThread);
  const std::size_t threads = wanted < 2 ? 1 : std::min(wanted, core::usable_cpus());
  // As one dimension, halves of contiguous tensors are contiguous.
  const bool flat = from.is_contiguous() && to.is_contiguous();
  std::vector<Pair> pairs = {flat ? Pair{flattened(from), flattened(to)} : Pair{from, to}};
  while (threads > 1 && pairs.size() < 4 * threads) {
    std::vector<Pair> halves;
    for (const Pair& pair : pairs) {
      auto [first, second] = halve(pair);
      halves.push_back(std::move(first));
      halves.push_back(std::move(second));
    }
    pairs = std::move(halves);
  }
  core::parallel_for(pairs.size(), threads, [&](std::size_t i) { cast_pair(pairs[i], strict); });
}

}  // namespace penstock::ops
