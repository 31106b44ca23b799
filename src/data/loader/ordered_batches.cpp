// The order follows from the sampler, seed and epoch, so it is made when an epoch begins, and kept until the loader
// leaves that epoch. A sampler that was told other indices or weights, or a program's own, may give another order when
// a loader goes on, which is found out here.

#include <new>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/samples_name.h"
#include "data/loader/batch_origin.h"
#include "data/loader/dealing.h"
#include "data/loader/taken_indices.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

class OrderedBatches final : public BatchOrigin {
 public:
  OrderedBatches(const Dataset& dataset, const LoaderOptions& options)
      : dataset_(dataset), dealing_(dataset, options), sampler_(dealing_.batches()), taken_(dealing_) {}

  std::optional<std::int64_t> batches() const override { return sampler_.size(); }
  std::int64_t samples() const override { return dataset_.size(); }
  std::string dataset() const override { return samples_name(dataset_); }
  std::int64_t replicas() const override { return sampler_.replicas(); }
  std::string order() const override { return std::string(sampler_.kind()); }
  void describe(LoaderPosition& position, const Standing& here) const override {
    position.indices = order_ ? taken_.of(order_, here.batch) : expected_;
  }
  void require(const LoaderPosition&, const Standing&) const override {}
  void go(const Standing& from, const Standing& to) override {
    if (from.of != to.of) order_ = nullptr;
    expected_.clear();
  }
  void resume(const LoaderPosition& position) override {
    order_ = nullptr;
    expected_ = position.indices;
  }
  std::shared_ptr<const BatchOrder> begin(const Standing& here) override {
    if (!order_) order_ = made(here.of);
    // What was taken since a position is no news; before the first batch behind it, all of it is.
    if (!expected_.empty()) require_same_indices(here);
    return order_;
  }
  bool take(std::int64_t) override {
    expected_.clear();
    return false;
  }
  void mark(Batch& batch, std::int64_t number) const override { dealing_.mark(batch, number); }

 private:
  std::shared_ptr<const BatchOrder> made(const EpochSeed& of) const {
    try {
      auto order = std::make_shared<const BatchOrder>(sampler_.batches(of.seed, of.epoch));
      if (order->size() == sampler_.size()) return order;
      core::refuse(core::format("the batch sampler gives {}, but its size() is {}",
                                core::counted(order->size(), "batch", "batches"), sampler_.size()));
    } catch (const std::bad_alloc&) {
      throw_too_large();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw_too_large();
      throw;
    }
  }

  void require_same_indices(const Standing& here) const {
    if (here.batch >= order_->size()) return;
    if (TakenIndices::agree(expected_, taken_.of(order_, here.batch))) return;
    throw Error(
        ErrorCode::kChanged,
        core::format("the sampler gives other indices for the {} of epoch {} that were taken before the position "
                     "was: going on would lose samples and repeat others; make it of the same indices, weights, "
                     "lengths or batch_size, have one of your own draw from seed and epoch alone, or begin an epoch",
                     core::counted(static_cast<std::uint64_t>(here.batch), "batch", "batches"), here.of.epoch));
  }

  [[noreturn]] void throw_too_large() const {
    throw Error(ErrorCode::kOutOfMemory,
                core::format("the order of an epoch of {} from {} takes more memory than there is (4 "
                             "or 8 bytes a sample); use a part of the dataset",
                             core::counted(static_cast<std::uint64_t>(sampler_.size()), "batch", "batches"),
                             core::counted(static_cast<std::uint64_t>(samples()), "sample")));
  }

  Dataset dataset_;
  Dealing dealing_;
  BatchSampler sampler_;
  TakenIndices taken_;
  std::shared_ptr<const BatchOrder> order_;  ///< of the epoch at hand, once known
  std::string expected_;                     ///< LoaderPosition::indices, until a batch is taken behind that position
};

}  // namespace

std::unique_ptr<BatchOrigin> ordered_batches(const Dataset& dataset, const LoaderOptions& options) {
  return std::make_unique<OrderedBatches>(dataset, options);
}

}  // namespace penstock::data
