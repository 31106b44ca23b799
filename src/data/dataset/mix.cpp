// Parts, repetitions and mixtures, all by arithmetic on indices.
#include "penstock/mix.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "data/dataset/turns.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"
#include "penstock/error.h"

namespace penstock {

namespace {

/// Sample i is sample `begin + i % period` of another dataset.
class Cycle final : public detail::DatasetImpl {
 public:
  Cycle(Dataset dataset, std::int64_t begin, std::int64_t period, std::int64_t size)
      : dataset_(std::move(dataset)), begin_(begin), period_(period), size_(size) {}

  std::int64_t size() const noexcept override { return size_; }
  std::string describe(std::int64_t index) const override { return below().describe(inner(index)); }
  std::string path(std::int64_t index) const override { return below().path(inner(index)); }
  bool samples_are_files() const noexcept override { return below().samples_are_files(); }
  std::uint32_t draws() const noexcept override { return below().draws(); }
  std::uint32_t random_stages() const noexcept override { return below().random_stages(); }
  std::span<const std::string> classes() const noexcept override { return below().classes(); }
  std::uint64_t read_bytes(std::int64_t index) const override { return below().read_bytes(inner(index)); }
  std::span<const data::UserFunction> batch_functions() const noexcept override { return below().batch_functions(); }

  void locate(std::span<const std::int64_t> indices, data::Scratch& scratch,
              std::span<data::Sample> out) const override {
    const std::span<std::int64_t> of = scratch.arena.array<std::int64_t>(indices.size());
    std::transform(indices.begin(), indices.end(), of.begin(), [this](std::int64_t index) { return inner(index); });
    below().locate(of, scratch, out);
  }
  Value value(std::int64_t index, data::Scratch& scratch) const override {
    return below().value(inner(index), scratch);
  }

 private:
  const detail::DatasetImpl& below() const noexcept { return dataset_.impl(); }
  std::int64_t inner(std::int64_t index) const noexcept { return begin_ + index % period_; }

  Dataset dataset_;
  std::int64_t begin_;
  std::int64_t period_;
  std::int64_t size_;
};

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

void require_count(std::int64_t count, const char* what) {
  if (count < 0) refuse(core::format("the number of {} is {}; it must be 0 or more", what, count));
}

Dataset stretch(const Dataset& dataset, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = end - begin;
  return Dataset(std::make_shared<Cycle>(dataset, begin, std::max<std::int64_t>(size, 1), size));
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

}  // namespace

Dataset take(const Dataset& dataset, std::int64_t count) {
  require_count(count, "samples to take");
  return stretch(dataset, 0, std::min(count, dataset.size()));
}

Dataset skip(const Dataset& dataset, std::int64_t count) {
  require_count(count, "samples to skip");
  return stretch(dataset, std::min(count, dataset.size()), dataset.size());
}

Dataset repeat(const Dataset& dataset, std::int64_t times) {
  require_count(times, "repetitions");
  const auto size = core::try_mul(static_cast<std::uint64_t>(dataset.size()), static_cast<std::uint64_t>(times));
  if (!size || *size > std::numeric_limits<std::int64_t>::max()) {
    refuse(core::format("{} times {} are more than a dataset may have; repeat it fewer times", times,
                        core::counted(static_cast<std::uint64_t>(dataset.size()), "sample")));
  }
  return Dataset(
      std::make_shared<Cycle>(dataset, 0, std::max<std::int64_t>(dataset.size(), 1), static_cast<std::int64_t>(*size)));
}

Dataset mix(const std::vector<Dataset>& datasets, const std::vector<double>& weights, const MixOptions& options) {
  for (const Dataset& dataset : datasets) data::require_samples(dataset, "mix");
  const std::vector<double> shares = data::shares_of(datasets.size(), "dataset", weights);
  require_some(datasets, weights);
  if (options.size) require_count(*options.size, "samples of a mixture");
  std::vector<std::int64_t> begins;
  std::int64_t end = 0;
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    begins.push_back(end);
    end = core::checked_add(end, datasets[i].size(), "the size of all datasets of a mixture");
    unfinished += shares[i] > 0 ? 1 : 0;
  }
  if (!options.size && options.end == MixEnd::kAll) require_end(datasets, shares);
  data::Turns turns(shares);
  std::vector<std::int64_t> indices;
  while (options.size ? std::ssize(indices) < *options.size : unfinished > 0) {
    const std::size_t from = turns.next();
    const std::int64_t size = datasets[from].size();
    const std::int64_t given = turns.given(from);
    if (!options.size && options.end == MixEnd::kFirst && given > size) break;
    indices.push_back(begins[from] + (given - 1) % size);
    if (given == size) --unfinished;
  }
  return subset(concat(datasets), std::move(indices));
}

}  // namespace penstock
