#pragma once

// Sums, means and extremes over dimensions. The order of additions is fixed, so that a result does not depend on
// threads or device.

#include <cstdint>
#include <span>
#include <string_view>

#include "ops/reduction_order.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// Results that are reduced side by side; their lanes stay in the first cache.
inline constexpr std::int64_t kColumns = 64;

/// A tensor whose dimensions are arranged for reducing some of them: its elements in C order are `outer` times `count`
/// times `inner`, and those of one result are the `count` ones between.
struct Reduction {
  Tensor view;
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
  std::size_t outer_rank = 0;  ///< dimensions of `view` that are `outer`, the first
  std::size_t inner_rank = 0;  ///< that are `inner`, the last
  Shape result;                ///< shape of what is left: outer * inner elements in C order

  std::int64_t results() const noexcept { return outer * inner; }
  std::int64_t chunks() const noexcept { return (count + kChunk - 1) / kChunk; }
};

/// Reduces `dims` (all, when empty), with sizes of 1 in their place if `keepdim`. kIndexOutOfRange,
/// kInvalidArgument for a dimension named twice.
Reduction make_reduction(const Tensor& tensor, std::span<const std::int64_t> dims, bool keepdim,
                         std::string_view operation);

enum class Extreme : std::uint8_t { kMax, kMin };

/// Sums into a new tensor of `type`, in which they are formed: int64, float32, float64 or complex, and which every
/// element is converted to.
Tensor sum_as(const Reduction& reduction, const DType& type);
/// Values of view's type, and int64 indices.
struct ExtremeResults {
  Tensor values;
  Tensor indices;
};
/// count >= 1.
ExtremeResults find_extremes(const Reduction& reduction, Extreme extreme);

}  // namespace penstock::ops
