#include "data/sample/require_samples.h"

#include "core/format.h"
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

}  // namespace penstock::data
