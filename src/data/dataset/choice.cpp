// A choice between datasets. What is drawn is known where samples are fetched, from seed, epoch and index, so that the
// samples are those of the datasets one behind the other, at indices that differ from epoch to epoch.

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/map.h"
#include "data/dataset/turns.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"
#include "data/transform/geometry.h"
#include "penstock/error.h"
#include "penstock/mix.h"

namespace penstock {

namespace {

class Choice final : public detail::DatasetImpl {
 public:
  Choice(std::vector<Dataset> parts, const std::vector<double>& shares)
      : parts_(std::move(parts)),
        all_(concat(parts_)),
        size_(parts_[0].size()),
        draw_(data::most_of(parts_, &DatasetImpl::draws)) {
    std::partial_sum(shares.begin(), shares.end(), std::back_inserter(ends_));
    last_ =
        static_cast<std::size_t>(std::find_if(shares.rbegin(), shares.rend(), is_above_0).base() - shares.begin()) - 1;
  }

  std::int64_t size() const override { return size_; }
  std::string describe(std::int64_t index) const override {
    std::string out;
    for (const Dataset& part : parts_) out += (out.empty() ? "" : " or ") + part.impl().describe(index);
    return out;
  }
  std::uint32_t draws() const noexcept override { return draw_ + 1; }
  std::uint32_t random_stages() const noexcept override { return data::most_of(parts_, &DatasetImpl::random_stages); }
  std::uint64_t read_bytes(std::int64_t index) const override {
    std::uint64_t most = 0;
    for (const Dataset& part : parts_) most = std::max(most, part.impl().read_bytes(index));
    return most;
  }
  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    if (work.call.headers_only) {
      throw Error(ErrorCode::kUnsupported,
                  "a choice has another sample in each epoch, so that no header tells what it is; take lengths and "
                  "types of the datasets that it chooses from");
    }
    const auto drawn = work.scratch.arena.array<std::int64_t>(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) drawn[i] = place_of(indices[i], work.call);
    all_.impl().fetch(drawn, work, out);
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    return all_.impl().value(place_of(index, work.call), work);
  }

 private:
  static bool is_above_0(double share) noexcept { return share > 0; }

  /// The sample among those of all parts.
  std::int64_t place_of(std::int64_t index, const data::CallContext& call) const noexcept {
    data::Draws draws(call.key_of(index));
    draws.go_to(draw_);
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), draws.uniform());
    // Shares are rounded, so their sum may be a little less than 1.
    const std::size_t part = std::min(static_cast<std::size_t>(end - ends_.begin()), last_);
    return static_cast<std::int64_t>(part) * size_ + index;
  }

  std::vector<Dataset> parts_;
  Dataset all_;
  std::int64_t size_;
  std::vector<double> ends_;  ///< of each part's share of [0, 1)
  std::size_t last_ = 0;      ///< part that has a share
  std::uint32_t draw_;        ///< the number of the sample's random number that decides
};

}  // namespace

Dataset choice(const std::vector<Dataset>& datasets, const std::vector<double>& weights) {
  if (datasets.empty()) core::refuse("there is nothing to choose from; give one dataset or more");
  for (const Dataset& dataset : datasets) data::require_samples(dataset, "a choice");
  const std::vector<double> equal(datasets.size(), 1.0);
  const std::vector<double> shares = data::shares_of(datasets.size(), "dataset", weights.empty() ? equal : weights);
  data::require_equal_sizes(datasets, "a choice", "mix() takes datasets of other sizes");
  return Dataset(std::make_shared<Choice>(datasets, shares));
}

}  // namespace penstock
