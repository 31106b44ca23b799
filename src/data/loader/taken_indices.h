#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/loader/dealing.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// LoaderPosition::indices: a checksum of what a sampler gave for the batches that were taken, where its order does not
/// follow from the number of samples, seed and epoch alone. Where the loader deals the order out, the sum is that of
/// what all ranks took, which is the same on each of them, and for other ranks that took as much. One thread at a time.
class TakenIndices {
 public:
  explicit TakenIndices(const Dealing& dealing);

  /// Of the first `count` batches of `order`, the last that the dealing gave; empty where there is nothing to tell.
  /// `order` may be null.
  std::string of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count) const;
  /// Whether both may be of one order: those that different ranks have for themselves cannot be compared.
  static bool agree(std::string_view a, std::string_view b);

 private:
  std::uint64_t sum_of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count, bool has_batches) const;

  std::string whose_;  ///< a rank, or all; empty: nothing is told
  std::shared_ptr<const SharedOrder> shared_;
  // How far the sum has come: it is continued where more batches of the same order are asked for.
  mutable std::weak_ptr<const BatchOrder> order_;
  mutable std::int64_t count_ = 0;
  mutable std::uint64_t sum_ = 0;
};

}  // namespace penstock::data
