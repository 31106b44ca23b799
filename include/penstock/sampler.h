#pragma once

/// In which order an epoch gives its samples, and which of them form a batch. The factories in namespace `sampler` make
/// every common order; give one to LoaderOptions::sampler. For an order of your own, derive a class from
/// SamplerInterface. Start at `sampler::random`.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/standard.h"

namespace penstock {

namespace detail {
class OrderImpl;
}

/// Indices of samples, in order. An immutable value whose copies share their memory; thread-safe.
class Order {
 public:
  /// An empty order.
  Order() = default;
  Order(const Order&) = default;
  Order(Order&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Order& operator=(const Order&) & = default;
  Order& operator=(Order&&) & noexcept = default;
  ~Order() = default;
  /// 8 bytes an index.
  Order(std::vector<std::int64_t> indices);  // NOLINT(google-explicit-constructor): an order is one
  Order(std::initializer_list<Integer> indices) : Order(std::vector<std::int64_t>(indices.begin(), indices.end())) {}
  /// 4 bytes an index.
  explicit Order(std::vector<std::uint32_t> indices);
  /// For the library itself.
  explicit Order(std::shared_ptr<const detail::OrderImpl> impl) noexcept : impl_(std::move(impl)) {}
  /// 0, 1, ... size - 1, which take no memory. kInvalidArgument for a negative size.
  static Order range(Integer size);

  std::int64_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  /// The index at `position`, which is at least 0 and less than size().
  std::int64_t operator[](Integer position) const noexcept;
  /// Fills `out` with the indices from `position` on. position + out.size() is at most size().
  void copy(Integer position, std::span<std::int64_t> out) const noexcept;
  std::vector<std::int64_t> to_vector() const;

 private:
  std::shared_ptr<const detail::OrderImpl> impl_;  ///< none when null
};

/// What a sampler of your own implements. It decides the order of samples from (seed, epoch) alone, so that every
/// worker, every rank and every resumed run agrees. Objects are immutable and thread-safe.
class SamplerInterface {
 public:
  virtual ~SamplerInterface() = default;
  /// Indices in an epoch.
  virtual std::int64_t size() const noexcept = 0;
  /// The indices of one epoch, size() of them.
  virtual Order order(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// The number of ranks that share one order. Rank r of n takes positions r, r + n, ... of it, so the first k indices
  /// of all ranks together are the first k * n of the shared order.
  virtual std::int64_t replicas() const noexcept { return 1; }
  /// A name for how the order is decided ("sequential", "random", ...). A loader refuses the saved position of a loader
  /// of another kind, because the same (seed, epoch) gives other samples there. All ranks that share an order return
  /// the same name. The text must stay valid for ever.
  virtual std::string_view kind() const noexcept { return "own"; }
};

/// A sampler: decides the order of samples. A value handle on an immutable SamplerInterface; thread-safe, and copies
/// cost nothing. Made by the factories of namespace `sampler`, or from an object of a class derived from
/// SamplerInterface.
class Sampler {
 public:
  /// No samples.
  Sampler();
  template <std::derived_from<SamplerInterface> Own>
  Sampler(Own own)  // NOLINT(google-explicit-constructor): options are written `.sampler = MySampler(9)`
      : impl_(std::make_shared<const Own>(std::move(own))) {}
  /// Shares an object, one that cannot be moved for example. kInvalidArgument for null.
  explicit Sampler(std::shared_ptr<const SamplerInterface> own);
  Sampler(const Sampler&) = default;
  Sampler(Sampler&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Sampler& operator=(const Sampler&) & = default;
  Sampler& operator=(Sampler&&) & noexcept = default;
  ~Sampler() = default;

  /// What SamplerInterface says of each.
  std::int64_t size() const noexcept { return impl_->size(); }
  Order order(std::uint64_t seed, std::uint64_t epoch) const;
  std::int64_t replicas() const noexcept { return impl_->replicas(); }
  const std::string_view kind() const noexcept { return impl_->kind(); }

 private:
  std::shared_ptr<const SamplerInterface> impl_;
};

/// All batches of one epoch: an order, cut into pieces. An immutable value; thread-safe.
class BatchOrder {
 public:
  /// Batch b ends before position ends[b] of `order`. kInvalidArgument unless `ends` only grow, within the order.
  BatchOrder(Order order, std::vector<std::int64_t> ends);
  BatchOrder(const BatchOrder&) = default;
  BatchOrder(BatchOrder&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  BatchOrder& operator=(const BatchOrder&) & = default;
  BatchOrder& operator=(BatchOrder&&) & noexcept = default;
  ~BatchOrder() = default;
  /// `batch_size` indices at a time. With drop_last, a smaller last batch is left out. kInvalidArgument for a size
  /// below 1.
  static BatchOrder equal(Order order, Integer batch_size, Flag drop_last = false);

  std::int64_t size() const noexcept { return batch_size_ > 0 ? count_ : static_cast<std::int64_t>(ends_.size()); }
  /// The indices of batch `number`, which is at least 0 and less than size().
  const std::vector<std::int64_t> operator[](Integer number) const;

 private:
  BatchOrder() = default;

  Order order_;
  std::vector<std::int64_t> ends_;
  std::int64_t batch_size_ = 0;  ///< 0: ends_ says where batches end
  std::int64_t count_ = 0;
};

/// What a batch sampler of your own implements. Objects are immutable and thread-safe.
class BatchSamplerInterface {
 public:
  virtual ~BatchSamplerInterface() = default;
  /// All batches of one epoch, size() of them.
  virtual BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Batches in an epoch.
  virtual std::int64_t size() const noexcept = 0;
  /// SamplerInterface::replicas of the sampler that the indices come from, when all batches have one size; or the ranks
  /// that share these batches, when rank r of n takes batches r, r + n, ...
  virtual std::int64_t replicas() const noexcept { return 1; }
  /// SamplerInterface::kind of the sampler that the indices come from.
  virtual std::string_view kind() const noexcept { return "own"; }
};

/// A batch sampler: decides which samples form each batch. A value handle on an immutable BatchSamplerInterface;
/// thread-safe, and copies cost nothing. Made by `sampler::batches`, or from an object of a class derived from
/// BatchSamplerInterface.
class BatchSampler {
 public:
  /// No batches.
  BatchSampler();
  template <std::derived_from<BatchSamplerInterface> Own>
  BatchSampler(Own own)  // NOLINT(google-explicit-constructor): options are written `.batch_sampler = MyBatches(9)`
      : impl_(std::make_shared<const Own>(std::move(own))) {}
  /// Shares an object, one that cannot be moved for example. kInvalidArgument for null.
  explicit BatchSampler(std::shared_ptr<const BatchSamplerInterface> own);
  BatchSampler(const BatchSampler&) = default;
  BatchSampler(BatchSampler&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  BatchSampler& operator=(const BatchSampler&) & = default;
  BatchSampler& operator=(BatchSampler&&) & noexcept = default;
  ~BatchSampler() = default;

  /// What BatchSamplerInterface says of each.
  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const;
  std::int64_t size() const noexcept { return impl_->size(); }
  std::int64_t replicas() const noexcept { return impl_->replicas(); }
  const std::string_view kind() const noexcept { return impl_->kind(); }

 private:
  std::shared_ptr<const BatchSamplerInterface> impl_;
};

struct RandomOptions {
  Flag replacement = false;
  /// Indices in an epoch; unset: size. Without replacement, more than size repeats whole permutations.
  std::optional<Integer> num_samples = {};
  /// Compute each index when it is asked for, and keep none: an order takes no memory, and begins at once, for any
  /// size. It is another permutation than PyTorch's. Not with replacement.
  Flag compact = false;
};

/// What becomes of an order that cannot be dealt out evenly. Every rank gets as many samples or batches in any case,
/// because ranks that take different numbers of steps wait for each other for ever.
enum class Remainder : std::uint8_t {
  kPad,    ///< repeat from the start until every rank has as many (PyTorch's way)
  kDrop,   ///< leave out the last ones
  kExact,  ///< as kPad, and Batch::valid is false for what is repeated; for LoaderOptions::ranks alone
};
struct DistributedOptions {
  Integer rank = 0;
  Integer num_replicas = 1;
  Flag shuffle = true;
  Remainder remainder = Remainder::kPad;
};

/// See sampler::node_local.
struct NodeLocalOptions {
  Integer nodes = 1;           ///< parts that the indices are cut into
  Integer ranks_per_node = 1;  ///< neighbouring ranks that share a part
  Flag shuffle = true;         ///< each part in another order each epoch; else in the order of its indices
};

namespace sampler {

/// 0, 1, ... size - 1.
Sampler sequential(Integer size);
/// A permutation for each epoch, by PyTorch's randperm with a generator seeded with seed + epoch. It takes 4 bytes an
/// index (8 beyond 2^32), or none with RandomOptions::compact.
Sampler random(Integer size, const RandomOptions& options = {});
/// The given indices: in this order, or permuted anew each epoch.
Sampler subset(std::vector<std::int64_t> indices, Flag shuffle = false);
/// Index i with probability proportional to weights[i]. kInvalidArgument unless the weights are finite, not negative
/// and not all zero. There may be any number of them. Without replacement, num_samples may not exceed the number of
/// weights above zero.
Sampler weighted(std::vector<double> weights, Integer num_samples, Flag replacement = true);
/// An order in which every node reads the same samples in each epoch, so that its disk cache or memory holds them. The
/// indices are cut into `nodes` contiguous parts, and the order takes `ranks_per_node` of each part in turn. Dealt out
/// to ranks (LoaderOptions::ranks) of as many nodes, node k has part k. With fewer nodes that divide `nodes`, each has
/// several parts, so choose a number that many others divide. The order is the same for any number of ranks, and each
/// sample comes once. Where parts do not divide evenly, the last few samples may go to other nodes. kInvalidArgument
/// for fewer than one node or rank.
Sampler node_local(Integer size, const NodeLocalOptions& options);
/// Rank r of n takes positions r, r + n, ... of an order that all ranks agree on; every rank gets the same number of
/// them. kInvalidArgument unless 0 <= rank < num_replicas. The second form splits another sampler's order, the third
/// one deals out whole batches. LoaderOptions::ranks does this for a loader.
Sampler distributed(Integer size, const DistributedOptions& options);
Sampler distributed(Sampler order, const DistributedOptions& options);
BatchSampler distributed(BatchSampler batches, const DistributedOptions& options);

/// `batch_size` indices at a time. With drop_last, a smaller last batch is left out. kInvalidArgument for a size
/// below 1.
BatchSampler batches(Sampler sampler, Integer batch_size, Flag drop_last = false);
/// The same given batches every epoch. kInvalidArgument for an empty one.
BatchSampler batches(std::vector<std::vector<std::int64_t>> given);

}  // namespace sampler

}  // namespace penstock
