// One order is decided by all ranks alike and dealt out like cards: rank r of n takes positions r, r + n, .... So the
// first k steps of all ranks together are a beginning of the shared order, for any number of ranks. That is why another
// number of ranks can go on where these stopped.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/sampler/order_impl.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

using core::refuse;

/// How many of `total` each rank gets.
std::int64_t share_of(std::int64_t total, const DistributedOptions& options) {
  const std::int64_t whole = total / options.num_replicas;
  return whole + (options.remainder == Remainder::kPad && total % options.num_replicas != 0 ? 1 : 0);
}

/// An order of the sampler to distribute that has another size than it said; `what` is "sampler".
[[noreturn]] void refuse_size(std::string_view what, const std::string& given, std::int64_t said) {
  refuse(core::format("the {} to distribute gave {} and said that it has {}", what, given, said));
}

/// What one rank is dealt of an order that is computed.
class DealtOrder final : public detail::OrderImpl {
 public:
  DealtOrder(Order all, const DistributedOptions& options, std::int64_t size)
      : all_(std::move(all)), options_(options), size_(size) {}

  std::int64_t size() const noexcept override { return size_; }
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override {
    for (std::int64_t& index : out) {
      // Beyond the end only when padding: again from the start.
      index = all_[(position++ * options_.num_replicas + options_.rank) % all_.size()];
    }
  }

 private:
  Order all_;
  DistributedOptions options_;
  std::int64_t size_;
};

class Distributed final : public SamplerInterface {
 public:
  Distributed(Sampler order, const DistributedOptions& options)
      : order_(std::move(order)), options_(options), per_rank_(share_of(order_.size(), options)) {}

  std::int64_t size() const noexcept override { return per_rank_; }
  std::int64_t replicas() const noexcept override { return options_.num_replicas; }
  std::string_view kind() const noexcept override { return order_.kind(); }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    const Order all = order_.order(seed, epoch);
    if (all.size() != order_.size()) {
      refuse_size("sampler", core::counted(all.size(), "index", "indices"), order_.size());
    }
    // Of others the whole would stay in memory for the part.
    if (is_computed()) return Order(std::make_shared<DealtOrder>(all, options_, per_rank_));
    std::vector<std::int64_t> out(static_cast<std::size_t>(per_rank_));
    DealtOrder(all, options_, per_rank_).copy(0, out);
    return out;
  }

 private:
  /// Whether it takes no memory, for any size.
  bool is_computed() const noexcept { return kind() == "sequential" || kind() == "random, compact"; }

  Sampler order_;
  DistributedOptions options_;
  std::int64_t per_rank_;
};

class DistributedBatches final : public BatchSamplerInterface {
 public:
  DistributedBatches(BatchSampler batches, const DistributedOptions& options)
      : batches_(std::move(batches)), options_(options), per_rank_(share_of(batches_.size(), options)) {}

  std::int64_t size() const noexcept override { return per_rank_; }
  std::int64_t replicas() const noexcept override { return options_.num_replicas; }
  std::string_view kind() const noexcept override { return batches_.kind(); }

  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override {
    const BatchOrder all = batches_.batches(seed, epoch);
    if (all.size() != batches_.size()) {
      refuse_size("batch sampler", core::counted(all.size(), "batch", "batches"), batches_.size());
    }
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> ends;
    std::int64_t number = options_.rank;
    for (std::int64_t step = 0; step < per_rank_; ++step, number += options_.num_replicas) {
      const std::vector<std::int64_t> batch = all[number % all.size()];
      indices.insert(indices.end(), batch.begin(), batch.end());
      ends.push_back(static_cast<std::int64_t>(indices.size()));
    }
    return {std::move(indices), std::move(ends)};
  }

 private:
  BatchSampler batches_;
  DistributedOptions options_;
  std::int64_t per_rank_;
};

void check(const DistributedOptions& options) {
  if (options.num_replicas < 1) {
    refuse(core::format("num_replicas is {}; it must be 1 or more", options.num_replicas));
  }
  if (options.rank < 0 || options.rank >= options.num_replicas) {
    refuse(core::format("Invalid rank {}, rank should be in the interval [0, {}]", options.rank,
                        options.num_replicas - 1));
  }
  if (options.remainder == Remainder::kExact) {
    refuse(
        "a sampler has no way to say which samples are repeated; use the loader's option `ranks` with this remainder");
  }
}

}  // namespace

Sampler sampler::distributed(Sampler order, const DistributedOptions& options) {
  check(options);
  return Distributed(std::move(order), options);
}

BatchSampler sampler::distributed(BatchSampler batches, const DistributedOptions& options) {
  check(options);
  return DistributedBatches(std::move(batches), options);
}

Sampler sampler::distributed(Integer size, const DistributedOptions& options) {
  return sampler::distributed(options.shuffle ? random(size) : sequential(size), options);
}

}  // namespace penstock
