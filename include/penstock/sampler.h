#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace penstock {

/// Decides the order of samples from (seed, epoch) alone, so that every worker, rank and resumed run agrees. Immutable
/// and thread-safe. Derive from it for an order of your own.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Indices an epoch has.
  virtual std::int64_t size() const noexcept = 0;
  /// The indices of one epoch, size() of them.
  virtual std::vector<std::int64_t> order(std::uint64_t seed, std::uint64_t epoch) const = 0;
};
using SamplerPtr = std::shared_ptr<const Sampler>;

/// 0, 1, ... size - 1.
SamplerPtr sequential(std::int64_t size);

struct RandomOptions {
  bool replacement = false;
  /// Indices an epoch; unset: size. Without replacement, more than size repeats whole permutations.
  std::optional<std::int64_t> num_samples = {};
};
/// A permutation for each epoch, by PyTorch's randperm with a generator seeded with seed + epoch.
SamplerPtr random(std::int64_t size, const RandomOptions& options = {});

/// The given indices: in this order, or permuted anew each epoch.
SamplerPtr subset(std::vector<std::int64_t> indices, bool shuffle = false);

/// Index i with probability proportional to weights[i]: finite, not negative, not all zero (kInvalidArgument). Any
/// number of weights. Without replacement num_samples may not exceed the number of weights above zero.
SamplerPtr weighted(std::vector<double> weights, std::int64_t num_samples, bool replacement = true);

enum class Remainder : std::uint8_t {
  kPad,   ///< repeat from the start until every rank has as many (PyTorch's way)
  kDrop,  ///< leave out the last ones
};
struct DistributedOptions {
  std::int64_t rank = 0;
  std::int64_t num_replicas = 1;
  bool shuffle = true;
  Remainder remainder = Remainder::kPad;
};
/// Rank r of n takes positions r, r + n, ... of an order all ranks agree on; the same number on every rank.
/// kInvalidArgument unless 0 <= rank < num_replicas. The second form splits another sampler's order.
SamplerPtr distributed(std::int64_t size, const DistributedOptions& options);
SamplerPtr distributed(SamplerPtr order, const DistributedOptions& options);

/// An epoch as batches. Immutable and thread-safe.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  /// All batches of one epoch: `indices` in order, batch b ending before position ends[b].
  struct Batches {
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> ends;
  };
  virtual Batches batches(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Batches an epoch has.
  virtual std::int64_t size() const noexcept = 0;
};
using BatchSamplerPtr = std::shared_ptr<const BatchSampler>;

/// `batch_size` (>= 1) at a time; the last, smaller one is left out with drop_last.
BatchSamplerPtr batches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last = false);
/// The same given batches every epoch.
BatchSamplerPtr batches(std::vector<std::vector<std::int64_t>> given);

}  // namespace penstock
