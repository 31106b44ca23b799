#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/collate/batch_plan.h"
#include "data/sample/expected_slots.h"

namespace penstock::data {

/// What the next batch will look like if it is like the last one, so that its memory can be had before its samples are
/// fetched. Right most of the time, and harmless when not.
class BatchPrediction {
 public:
  /// Learns from a batch.
  void note(const Fetched& fetched, const BatchPlan& plan);
  /// Bytes of the block of a batch of so many samples; 0 when there is no use in having it early.
  std::uint64_t bytes(std::size_t samples) const noexcept { return samples == samples_ ? bytes_ : 0; }
  /// Where samples of `dataset` go in that block, which has to outlive the answer.
  ExpectedSlots expected(const void* dataset, const Buffer& block) const noexcept;

 private:
  std::size_t samples_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t offset_ = 0;  ///< of the first slot
  std::uint64_t slot_ = 0;    ///< bytes
  std::uint32_t tensor_ = 0;
};

/// Whether the batch can use `block`: its size is right, and every sample that was read into it already lies in its own
/// slot.
bool fits(const Fetched& fetched, const BatchPlan& plan, std::span<const std::byte> block) noexcept;

}  // namespace penstock::data
