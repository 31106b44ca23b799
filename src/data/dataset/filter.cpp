// The samples that a function of the program keeps: every sample is read once, by a loader, whose batches say what was
// kept. What is left is a subset.
#include <utility>
#include <vector>

#include "data/dataset/map.h"
#include "data/dataset/with_runner.h"
#include "data/sample/require_samples.h"
#include "data/sample/user_call.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {

std::vector<std::int64_t> data::kept_indices(const Dataset& dataset, UserFunction keep, const FilterOptions& options,
                                             std::shared_ptr<Runner> runner, Around around) {
  require_samples(dataset, "filter");
  constexpr std::int64_t kBatch = 64;
  constexpr double kStopPeriod = 0.05;
  const Dataset kept = mapped(dataset, std::move(keep), Of::kSamples, false, around);
  DataLoader loader(runner == nullptr ? kept : with_runner(kept, std::move(runner)),
                    {.batch_size = kBatch, .num_workers = options.num_workers});
  std::vector<std::int64_t> indices;
  while (true) {
    if (options.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the filter was stopped before its end");
    const TimedBatch next = loader.next_for(kStopPeriod);
    if (next.timed_out) continue;
    if (!next.batch) break;
    const auto flags = next.batch->tensor().values<const bool>();
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i]) indices.push_back(next.batch->indices[i]);
    }
  }
  return indices;
}

Dataset Dataset::filter_plain(std::function<bool(const Value&)> keep, const FilterOptions& options) const {
  const auto tells = [f = std::move(keep)](const Value& sample, const data::RandomKey&) {
    return data::call_user("the function of filter", [&] { return Value::boolean(f(sample)); });
  };
  return subset(*this, data::kept_indices(*this, tells, options));
}

}  // namespace penstock
