#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "penstock/dataset.h"
#include "penstock/loader.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// What a sampler gave last for all ranks together: asked again in another program, it might give another order.
struct SharedOrder {
  std::int64_t steps_each = 1;  ///< steps of `order` in a batch of each rank
  bool has_batches = false;     ///< the program decides on batches, not on samples alone
  std::shared_ptr<const BatchOrder> order = {};
};

/// kInvalidArgument for a remainder without ranks, and for ranks that do not go with the other options.
void require_dealing(const LoaderOptions& options);
/// kInvalidArgument where a sampler, which deals its order out to so many ranks itself, is to be dealt out again.
void require_undealt(std::int64_t dealt, const Ranks& ranks);

enum class Dealt : std::uint8_t { kSamples, kBatches };
/// kInvalidArgument where Remainder::kDrop would leave every rank without any of `total`.
void require_share(std::int64_t total, const Ranks& ranks, Remainder remainder, Dealt what);

/// The batches that a loader's options ask for: of one rank where they name ranks.
class Dealing {
 public:
  /// kInvalidArgument for ranks that do not go with the other options, or that would get nothing.
  Dealing(const Dataset& dataset, const LoaderOptions& options);

  const BatchSampler& batches() const noexcept { return *batches_; }
  /// Whether a position tells the order: by the number of samples, seed, epoch and the kind of the sampler.
  bool is_told() const noexcept { return is_told_; }
  /// Null but for an order that is not told and is dealt out to ranks. `batches()` keeps it up to date, so that both
  /// are for one thread at a time.
  const std::shared_ptr<const SharedOrder>& shared() const noexcept { return shared_; }
  /// With Remainder::kExact: adds to Batch::valid which samples of batch `number` of the epoch are not repeated.
  void mark(Batch& batch, std::int64_t number) const;

 private:
  BatchSampler dealt(BatchSampler all);
  Sampler dealt(Sampler order);

  Ranks ranks_;
  Remainder remainder_;
  bool is_dealt_;
  bool is_told_ = true;
  std::int64_t batch_size_;  ///< 0: whole batches are dealt out
  std::int64_t total_ = 0;   ///< samples, or batches, of all ranks
  std::shared_ptr<const SharedOrder> shared_;
  std::optional<BatchSampler> batches_;
};

}  // namespace penstock::data
