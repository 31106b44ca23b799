#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/ranks.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// LoaderPosition::indices: a checksum of what a sampler of the program's own gave for the batches that were taken. The
/// orders of other samplers follow from seed and epoch. One thread at a time.
class TakenIndices {
 public:
  /// `ranks`: LoaderOptions::ranks.
  TakenIndices(const BatchSampler& batches, const std::optional<Ranks>& ranks);

  /// Of the first `count` batches of `order`; empty where there is nothing to tell. `order` may be null.
  std::string of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count) const;
  /// Whether both may be of one order: those of different ranks cannot be compared.
  static bool agree(std::string_view a, std::string_view b);

 private:
  std::int64_t rank_ = -1;  ///< none: nothing is told
  // How far the sum has come: it is continued where more batches of the same order are asked for.
  mutable std::weak_ptr<const BatchOrder> order_;
  mutable std::int64_t count_ = 0;
  mutable std::uint64_t sum_ = 0;
};

}  // namespace penstock::data
