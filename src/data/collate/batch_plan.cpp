#include "data/collate/batch_plan.h"

#include <limits>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock::data {

namespace {
[[noreturn]] void throw_too_large(const Shape& shape, const DType& dtype) {
  throw Error(ErrorCode::kOutOfMemory,
              core::format("a batch with {} of {} does not fit in memory; use a smaller batch_size", shape.to_string(),
                           dtype.name()));
}
}  // namespace

std::string Fetched::describe(std::size_t position) const {
  return core::format("sample {} ({})", indices[position], core::escaped(dataset.describe(indices[position])));
}

std::string Column::where() const { return leaf_.path.empty() ? std::string() : " at " + leaf_.path; }

void BatchPlan::clear() {
  outputs.clear();
  placements.clear();
  derived.clear();
  results.clear();
  by_sample = false;
  first_results.clear();
  bytes = payload = 0;
}

std::uint32_t BatchPlan::add(const DType& dtype, const Shape& shape) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - kAlignment;
  std::uint64_t size = dtype.itemsize();
  for (const std::int64_t dim : shape) {
    const auto product = core::try_mul(size, static_cast<std::uint64_t>(dim));
    if (!product) throw_too_large(shape, dtype);
    size = *product;
  }
  if (size > kMost - bytes) throw_too_large(shape, dtype);
  const std::uint64_t offset = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  if (size > kMost - offset) throw_too_large(shape, dtype);
  outputs.push_back({dtype, shape, offset});
  bytes = offset + size;
  return static_cast<std::uint32_t>(outputs.size() - 1);
}

}  // namespace penstock::data
