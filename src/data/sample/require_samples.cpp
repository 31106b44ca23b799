#include "data/sample/require_samples.h"

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset_impl.h"
#include "penstock/error.h"

namespace penstock::data {

void require_samples(const Dataset& dataset, std::string_view what) {
  if (dataset.impl().batch_functions().empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the dataset has a function of whole batches, which only a loader makes, so there is no "
                           "place for {}; map batches last",
                           what));
}

void require_equal_sizes(std::span<const Dataset> datasets, std::string_view what, std::string_view advice) {
  for (std::size_t i = 1; i < datasets.size(); ++i) {
    if (datasets[i].size() == datasets[0].size()) continue;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("datasets of {} must have equal sizes, but number {} has {} and number 0 has {}; {}", what,
                             i, core::counted(static_cast<std::uint64_t>(datasets[i].size()), "sample"),
                             datasets[0].size(), advice));
  }
}

std::int64_t joined_size(std::int64_t a, std::int64_t b) {
  if (const auto sum = core::try_add(a, b)) return *sum;
  core::refuse(core::format("{} and {} more are more than a dataset may have; put fewer together",
                            core::counted(static_cast<std::uint64_t>(a), "sample"), b));
}

std::int64_t from_start(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) {
    throw Error(ErrorCode::kIndexOutOfRange, core::format("sample {} is outside the dataset, which has {}", index,
                                                          core::counted(static_cast<std::uint64_t>(size), "sample")));
  }
  return index < 0 ? index + size : index;
}

}  // namespace penstock::data
