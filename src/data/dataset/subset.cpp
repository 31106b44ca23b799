#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "data/dataset/reindexed.h"

namespace penstock {

Dataset subset(const Dataset& dataset, std::vector<std::int64_t> indices) {
  const std::int64_t size = dataset.size();
  for (std::int64_t& index : indices) {
    if (index < -size || index >= size) {
      throw Error(ErrorCode::kIndexOutOfRange,
                  core::format("index {} of a subset is outside the dataset, which has {}", index,
                               core::counted(static_cast<std::uint64_t>(size), "sample")));
    }
    if (index < 0) index += size;
  }
  const std::int64_t count = std::ssize(indices);
  auto chosen = [indices = std::move(indices)](std::int64_t i) { return indices[static_cast<std::size_t>(i)]; };
  return data::reindexed(dataset, std::move(chosen), count);
}

}  // namespace penstock
