#pragma once

// Where the batches of a DataLoader come from: a sampler's order over a dataset, or a stream. The loader keeps where it
// stands, as numbers; its origin says what batches there are, and what a position holds besides these numbers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/batch/batch_maker.h"
#include "data/sample/work.h"
#include "penstock/loader.h"
#include "penstock/sample_stream.h"
#include "penstock/sampler.h"

namespace penstock::data {

/// Where a loader stands: the batch of an epoch that comes next.
struct Standing {
  EpochSeed of;
  std::int64_t batch = 0;

  friend bool operator==(const Standing&, const Standing&) = default;
};

/// For one thread at a time.
class BatchOrigin {
 public:
  virtual ~BatchOrigin() = default;

  /// In an epoch; nothing where nobody knows.
  virtual std::optional<std::int64_t> batches() const = 0;
  virtual std::int64_t samples() const = 0;
  /// By what a position tells what is read from other datasets of equal size, and from other streams. Some of its
  /// samples are looked at for that.
  virtual std::string dataset() const = 0;
  /// Ranks that share the order.
  virtual std::int64_t replicas() const = 0;
  /// Of what kind the order is, for positions.
  virtual std::string order() const = 0;
  /// Adds to the position of a loader that stands at `here` what only this knows.
  virtual void describe(LoaderPosition& position, const Standing& here) const = 0;
  /// Throws where a loader that stands at `here` cannot go to `position`.
  virtual void require(const LoaderPosition& position, const Standing& here) const = 0;
  /// The loader goes to another place than the next batch.
  virtual void go(const Standing& from, const Standing& to) = 0;
  /// It went to `position`.
  virtual void resume(const LoaderPosition& position) = 0;
  /// The order of the epoch at `here`, of which batches are about to be made from there on.
  virtual std::shared_ptr<const BatchOrder> begin(const Standing& here) = 0;
  /// Batch `number` was taken, whatever became of it. Whether the epoch had ended before it.
  virtual bool take(std::int64_t number) = 0;
  /// Adds to Batch::valid which samples of batch `number` count.
  virtual void mark(Batch& batch, std::int64_t number) const = 0;
};

/// Batches of a dataset, in the order that its options ask for. kInvalidArgument where they contradict each other.
std::unique_ptr<BatchOrigin> ordered_batches(const Dataset& dataset, const LoaderOptions& options);
/// The options of a stream's loader as those of a loader over all numbers, without ranks. kInvalidArgument for what a
/// stream cannot heed.
LoaderOptions as_endless(LoaderOptions options);
/// Batches of a stream, which `maker` is told to take from.
std::unique_ptr<BatchOrigin> streamed_batches(const SampleStream& stream, const LoaderOptions& options,
                                              BatchMaker& maker);

}  // namespace penstock::data
