#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/standard.h"

namespace penstock {

namespace detail {
class OrderImpl;
}

/// Indices of samples, in order. An immutable value whose copies share their memory; thread-safe.
class Order {
 public:
  /// None.
  Order() = default;
  /// 8 bytes an index.
  Order(std::vector<std::int64_t> indices);  // NOLINT(google-explicit-constructor): an order is one
  /// 4 bytes an index.
  explicit Order(std::vector<std::uint32_t> indices);
  /// For the library itself.
  explicit Order(std::shared_ptr<const detail::OrderImpl> impl) noexcept : impl_(std::move(impl)) {}
  /// 0, 1, ... size - 1, which take no memory. kInvalidArgument for a negative size.
  static Order range(std::int64_t size);

  std::int64_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  /// The index at `position`, which is at least 0 and less than size().
  std::int64_t operator[](std::int64_t position) const noexcept;
  /// Fills `out` with those from `position` on. position + out.size() is at most size().
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept;
  std::vector<std::int64_t> to_vector() const;

 private:
  std::shared_ptr<const detail::OrderImpl> impl_;  ///< none when null
};

/// Decides the order of samples from (seed, epoch) alone, so that every worker, rank and resumed run agrees. Immutable
/// and thread-safe. Derive from it for an order of your own.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Indices an epoch has.
  virtual std::int64_t size() const noexcept = 0;
  /// The indices of one epoch, size() of them.
  virtual Order order(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Ranks among which an order is dealt out in turn, of which this is the part of one; so that the first n indices of
  /// all of them are the first n * replicas() of that order.
  virtual std::int64_t replicas() const noexcept { return 1; }
  /// How the order is decided ("sequential", "random", ...), by which a loader tells the state of another one: each
  /// kind gives other samples for the same (seed, epoch). Of all ranks that share an order it is the same. Valid for
  /// ever.
  virtual std::string_view kind() const noexcept { return "own"; }
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
  /// All batches of one epoch.
  class Batches {
   public:
    /// Batch b ends before position ends[b] of `order`. kInvalidArgument unless `ends` only grow, within the order.
    Batches(Order order, std::vector<std::int64_t> ends);
    /// `batch_size` at a time; the last, smaller one is left out with drop_last. kInvalidArgument for a size below 1.
    static Batches equal(Order order, std::int64_t batch_size, bool drop_last = false);

    std::int64_t size() const noexcept { return batch_size_ > 0 ? count_ : static_cast<std::int64_t>(ends_.size()); }
    /// Batch `number` (at least 0, less than size()) in place of what `out` holds.
    void get(std::int64_t number, std::vector<std::int64_t>& out) const;

   private:
    Batches() = default;

    Order order_;
    std::vector<std::int64_t> ends_;
    std::int64_t batch_size_ = 0;  ///< 0: ends_ has what they end before
    std::int64_t count_ = 0;
  };
  virtual Batches batches(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Batches an epoch has.
  virtual std::int64_t size() const noexcept = 0;
  /// That of the sampler whose indices the batches have, where they are all of one size.
  virtual std::int64_t replicas() const noexcept { return 1; }
  /// That of the sampler whose indices the batches have.
  virtual std::string_view kind() const noexcept { return "own"; }
};
using BatchSamplerPtr = std::shared_ptr<const BatchSampler>;

/// `batch_size` at a time; the last, smaller one is left out with drop_last. kInvalidArgument for a size below 1.
BatchSamplerPtr batches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last = false);
/// The same given batches every epoch.
BatchSamplerPtr batches(std::vector<std::vector<std::int64_t>> given);

}  // namespace penstock
