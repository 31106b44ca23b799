// Parts, repetitions and mixtures, all by arithmetic on indices.
#include "penstock/mix.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/mixture.h"
#include "data/dataset/reindexed.h"
#include "data/dataset/turns.h"
#include "data/sample/require_samples.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using core::refuse;

void require_count(std::int64_t count, const char* what) {
  if (count < 0) refuse(core::format("the number of {} is {}; it must be 0 or more", what, count));
}

Dataset stretch(const Dataset& dataset, std::int64_t begin, std::int64_t end) {
  return data::reindexed(
      dataset, [begin](std::int64_t i) { return begin + i; }, end - begin);
}

void require_some(const std::vector<Dataset>& datasets, const std::vector<double>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0 && datasets[i].size() == 0) {
      refuse(core::format("dataset {} has no samples, but a weight of {}; leave it out", i, weights[i]));
    }
  }
}

/// A tiny share of a dataset takes very many samples of the others until it has given all.
void require_end(const std::vector<Dataset>& datasets, const std::vector<double>& shares) {
  constexpr double kMost = 1e10;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0 || static_cast<double>(datasets[i].size()) / shares[i] <= kMost) continue;
    refuse(
        core::format("dataset {} would have given all of its {} after more than 1e10 of the mixture; give the "
                     "mixture a size, or the dataset a larger weight",
                     i, core::counted(static_cast<std::uint64_t>(datasets[i].size()), "sample")));
  }
}

std::vector<std::int64_t> sizes_of(const std::vector<Dataset>& datasets) {
  std::vector<std::int64_t> out;
  for (const Dataset& dataset : datasets) out.push_back(dataset.size());
  return out;
}

}  // namespace

Dataset take(const Dataset& dataset, Integer count) {
  require_count(count, "samples to take");
  return stretch(dataset, 0, std::min<std::int64_t>(count, dataset.size()));
}

Dataset skip(const Dataset& dataset, Integer count) {
  require_count(count, "samples to skip");
  return stretch(dataset, std::min<std::int64_t>(count, dataset.size()), dataset.size());
}

Dataset repeat(const Dataset& dataset, Integer times) {
  require_count(times, "repetitions");
  const auto size = core::try_mul(static_cast<std::uint64_t>(dataset.size()), static_cast<std::uint64_t>(times));
  if (!size || *size > std::numeric_limits<std::int64_t>::max()) {
    refuse(core::format("{} times {} are more than a dataset may have; repeat it fewer times", times,
                        core::counted(static_cast<std::uint64_t>(dataset.size()), "sample")));
  }
  const std::int64_t period = std::max<std::int64_t>(dataset.size(), 1);
  return data::reindexed(
      dataset, [period](std::int64_t i) { return i % period; }, static_cast<std::int64_t>(*size));
}

Dataset mix(const std::vector<Dataset>& datasets, const std::vector<double>& weights, const MixOptions& options) {
  for (const Dataset& dataset : datasets) data::require_samples(dataset, "mix");
  const std::vector<double> shares = data::shares_of(datasets.size(), "dataset", weights);
  require_some(datasets, weights);
  if (options.size) require_count(*options.size, "samples of a mixture");
  if (!options.size && options.end == MixEnd::kAll) require_end(datasets, shares);
  data::Mixture mixture(sizes_of(datasets), shares, options);
  const std::int64_t size = mixture.size();
  auto index = [mixture = std::move(mixture)](std::int64_t i) { return mixture.index(i); };
  return data::reindexed(concat(datasets), std::move(index), size);
}

}  // namespace penstock
