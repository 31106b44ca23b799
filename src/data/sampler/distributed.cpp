#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Distributed final : public SamplerInterface {
 public:
  Distributed(Sampler order, const DistributedOptions& options) : order_(std::move(order)), options_(options) {
    const std::int64_t total = order_.size();
    const std::int64_t replicas = options.num_replicas;
    per_rank_ = total / replicas;
    if (options.remainder == Remainder::kPad && total % replicas != 0) ++per_rank_;
  }

  std::int64_t size() const noexcept override { return per_rank_; }
  std::int64_t replicas() const noexcept override { return options_.num_replicas; }
  std::string_view kind() const noexcept override { return order_.kind(); }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    const Order all = order_.order(seed, epoch);
    if (all.size() != order_.size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the sampler to distribute gave {} and said that it has {}",
                               core::counted(all.size(), "index", "indices"), order_.size()));
    }
    std::vector<std::int64_t> out(static_cast<std::size_t>(per_rank_));
    std::int64_t position = options_.rank;
    for (std::int64_t& index : out) {
      index = all[position % all.size()];  // beyond the end only when padding: again from the start
      position += options_.num_replicas;
    }
    return out;
  }

 private:
  Sampler order_;
  DistributedOptions options_;
  std::int64_t per_rank_;
};

}  // namespace

Sampler sampler::distributed(Sampler order, const DistributedOptions& options) {
  if (options.num_replicas < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("num_replicas is {}; it must be 1 or more", options.num_replicas));
  }
  if (options.rank < 0 || options.rank >= options.num_replicas) {
    throw Error(ErrorCode::kInvalidArgument, core::format("Invalid rank {}, rank should be in the interval [0, {}]",
                                                          options.rank, options.num_replicas - 1));
  }
  return Distributed(std::move(order), options);
}

Sampler sampler::distributed(std::int64_t size, const DistributedOptions& options) {
  return sampler::distributed(options.shuffle ? random(size) : sequential(size), options);
}

}  // namespace penstock
