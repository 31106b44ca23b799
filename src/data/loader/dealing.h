#pragma once

#include <cstdint>
#include <optional>

#include "penstock/dataset.h"
#include "penstock/loader.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// The batches that a loader's options ask for: of one rank where they name ranks. Immutable; thread-safe.
class Dealing {
 public:
  /// kInvalidArgument for ranks that do not go with the other options, or that would get nothing.
  Dealing(const Dataset& dataset, const LoaderOptions& options);

  const BatchSampler& batches() const noexcept { return *batches_; }
  /// With Remainder::kExact: adds to Batch::valid which samples of batch `number` of the epoch are not repeated.
  void mark(Batch& batch, std::int64_t number) const;

 private:
  BatchSampler dealt(const BatchSampler& all);
  Sampler dealt(Sampler order);

  Ranks ranks_;
  Remainder remainder_;
  bool is_dealt_;
  std::int64_t batch_size_;  ///< 0: whole batches are dealt out
  std::int64_t total_ = 0;   ///< samples, or batches, of all ranks
  std::optional<BatchSampler> batches_;
};

}  // namespace penstock::data
