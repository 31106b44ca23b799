// Samples that are repeated to give all ranks as many come last in the shared order, so that their positions say which
// they are: sample i of rank r lies at i * ranks + r of that order, and is a repeated one from `total_` on. No worker
// needs to know; the mark is put on a batch when it is handed out.
#include "data/loader/dealing.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/sampler/rank_sources.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

using core::refuse;

/// A sampler that keeps what it gave last. `batch_size`: of a step of all ranks.
class Watched final : public SamplerInterface {
 public:
  Watched(Sampler below, std::int64_t batch_size, std::shared_ptr<SharedOrder> last)
      : below_(std::move(below)), batch_size_(batch_size), last_(std::move(last)) {}
  std::int64_t size() const noexcept override { return below_.size(); }
  std::string_view kind() const noexcept override { return below_.kind(); }
  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    Order out = below_.order(seed, epoch);
    last_->order = std::make_shared<const BatchOrder>(BatchOrder::equal(out, batch_size_));
    return out;
  }

 private:
  Sampler below_;
  std::int64_t batch_size_;
  std::shared_ptr<SharedOrder> last_;
};

class WatchedBatches final : public BatchSamplerInterface {
 public:
  WatchedBatches(BatchSampler below, std::shared_ptr<SharedOrder> last)
      : below_(std::move(below)), last_(std::move(last)) {}
  std::int64_t size() const noexcept override { return below_.size(); }
  std::string_view kind() const noexcept override { return below_.kind(); }
  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override {
    BatchOrder out = below_.batches(seed, epoch);
    last_->order = std::make_shared<const BatchOrder>(out);
    return out;
  }

 private:
  BatchSampler below_;
  std::shared_ptr<SharedOrder> last_;
};

/// Whether the order follows from the number of samples, seed and epoch. Others follow from what samplers are told
/// (indices, weights, lengths), or from what a program's own draw from.
bool is_told_by_kind(const Sampler& order) {
  constexpr std::string_view kTold[] = {"sequential", "random", "random, compact", "random with replacement"};
  return std::find(std::begin(kTold), std::end(kTold), order.kind()) != std::end(kTold);
}

DistributedOptions distributed_options(const Ranks& ranks, Remainder remainder) {
  return {.rank = ranks.rank,
          .num_replicas = ranks.size,
          .remainder = remainder == Remainder::kExact ? Remainder::kPad : remainder};
}

}  // namespace

void require_dealing(const LoaderOptions& options) {
  if (!options.ranks) {
    if (options.remainder == Remainder::kPad) return;
    refuse("a remainder is what ranks cannot share evenly; give the loader its `ranks` too");
  }
  require_ranks(*options.ranks);
  if (options.remainder == Remainder::kExact && options.drop_last) {
    refuse("drop_last leaves samples out, and the remainder \"exact\" none; leave one of them out");
  }
  if (options.ranks->size > 1 && options.on_error == OnError::kSkip) {
    refuse(
        "on_error \"skip\" may leave a batch out on one rank alone, and the others would wait for it; use \"replace\" "
        "or \"mask\" with several ranks");
  }
}

void require_undealt(std::int64_t dealt, const Ranks& ranks) {
  if (dealt <= 1) return;
  refuse(core::format(
      "the sampler deals its order out to {} ranks itself, and the loader to {}; give the loader the order "
      "of all ranks, or leave its `ranks` out",
      dealt, ranks.to_string()));
}

void require_share(std::int64_t total, const Ranks& ranks, Remainder remainder, Dealt what) {
  if (remainder != Remainder::kDrop || total == 0 || total >= ranks.size) return;
  const bool batches = what == Dealt::kBatches;
  refuse(
      core::format("{} for {} ranks: with the remainder \"drop\" no rank would get any; use \"pad\" or \"exact\", or "
                   "fewer ranks",
                   core::counted(total, batches ? "batch" : "sample", batches ? "batches" : "samples"), ranks.size));
}

Dealing::Dealing(const Dataset& dataset, const LoaderOptions& options)
    : ranks_(options.ranks.value_or(Ranks())),
      remainder_(options.remainder),
      is_dealt_(options.ranks.has_value()),
      batch_size_(options.batch_sampler ? 0 : std::int64_t{options.batch_size}) {
  require_dealing(options);
  if (options.batch_sampler) {
    batches_ = is_dealt_ ? dealt(*options.batch_sampler) : *options.batch_sampler;
    is_told_ = false;  // a position has no size of such batches
    return;
  }
  const auto usual = [&] {
    return options.shuffle ? sampler::random(dataset.size()) : sampler::sequential(dataset.size());
  };
  Sampler order = options.sampler ? *options.sampler : usual();
  is_told_ = is_told_by_kind(order);
  batches_ =
      sampler::batches(is_dealt_ ? dealt(std::move(order)) : std::move(order), options.batch_size, options.drop_last);
}

BatchSampler Dealing::dealt(BatchSampler all) {
  total_ = all.size();
  require_undealt(all.replicas(), ranks_);
  require_share(total_, ranks_, remainder_, Dealt::kBatches);
  auto shared = std::make_shared<SharedOrder>(SharedOrder{.steps_each = ranks_.size, .has_batches = true});
  all = WatchedBatches(std::move(all), shared);
  shared_ = std::move(shared);
  return sampler::distributed(std::move(all), distributed_options(ranks_, remainder_));
}

Sampler Dealing::dealt(Sampler order) {
  total_ = order.size();
  require_undealt(order.replicas(), ranks_);
  require_share(total_, ranks_, remainder_, Dealt::kSamples);
  if (!is_told_ && batch_size_ > 0) {
    auto shared = std::make_shared<SharedOrder>();
    const std::int64_t all = batch_size_ > total_ / ranks_.size ? total_ : batch_size_ * ranks_.size;
    order = Watched(std::move(order), std::max<std::int64_t>(all, 1), shared);
    shared_ = std::move(shared);
  }
  return sampler::distributed(std::move(order), distributed_options(ranks_, remainder_));
}

void Dealing::mark(Batch& batch, std::int64_t number) const {
  if (!is_dealt_ || remainder_ != Remainder::kExact || batch.indices.empty()) return;
  const std::int64_t first = batch_size_ == 0 ? number : number * batch_size_;
  const bool known = batch.valid.defined();  // OnError::kMask has its say too
  if (!known) batch.valid = Tensor::empty(Shape{batch.size()}, DType::boolean);
  std::int64_t position = first * ranks_.size + ranks_.rank;
  for (bool& valid : batch.valid.values<bool>()) {
    valid = (!known || valid) && position < total_;
    if (batch_size_ != 0) position += ranks_.size;
  }
}

}  // namespace penstock::data
