#pragma once

// What a SampleStream is made of. A StreamNode describes where samples come from and never changes; a StreamReader is
// one walk over them, by one thread at a time. A reader gives the samples as they came, with the number that each has.
// What maps and native transforms make of a sample is the business of a dataset of those numbers
// (SampleStream::samples, cell.h), which finds the samples of the batch at hand in its CallContext. So everything that
// datasets have works on streams, and the steps that may run in parallel do.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/sample/stream_items.h"
#include "data/sample/user_call.h"
#include "data/sample/work.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/sample_stream.h"

namespace penstock::data {

/// One walk over a stream. What it throws belongs to one sample; `next` goes on behind it.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  /// The next sample, or null at the end and ever after. Throws SampleError, whose position is the sample's number, for
  /// a sample that a function of the program refuses after the source gave it; Error for what the source throws.
  virtual StreamItemPtr next(const Work& work) = 0;
  /// Samples asked of the sources so far.
  virtual std::int64_t read() const noexcept = 0;
  /// Goes at once to where that many samples were asked of the source; false, and nothing done, where that takes
  /// reading them.
  virtual bool seek(std::int64_t) { return false; }
  /// How many samples are asked of the source before the first one that this gives.
  virtual std::int64_t offset() const noexcept { return 0; }
};

/// `error` of a sample of the stream `name`, which has the number `number` in a stream that numbers anew.
SampleError renumbered(const SampleError& error, std::string_view name, std::int64_t number);

/// Immutable; thread-safe.
class StreamNode {
 public:
  virtual ~StreamNode() = default;
  /// A walk from the beginning. kInvalidArgument where there was one, and there can only be one.
  virtual std::unique_ptr<StreamReader> open(const EpochSeed& seed) const = 0;
  virtual bool can_begin_again() const noexcept = 0;
  /// Of its samples, for messages: "clips.tar".
  virtual std::string name() const = 0;
  /// What tells it from other streams of that name, for positions: UTF-8.
  virtual std::string identity() const;
  /// The dataset of its samples' numbers, to which nothing has been done yet.
  virtual Dataset samples() const;
};
using StreamNodePtr = std::shared_ptr<const StreamNode>;

/// A stream that gives samples of one other, as they are.
class StreamOver : public StreamNode {
 public:
  explicit StreamOver(StreamNodePtr below) : below_(std::move(below)) {}
  bool can_begin_again() const noexcept override { return below_->can_begin_again(); }
  std::string name() const override { return below_->name(); }
  std::string identity() const override { return below_->identity(); }

 protected:
  StreamNodePtr below_;
};

// The operations, each in a file of its own name.
StreamNodePtr source_node(std::function<detail::NextSample(std::int64_t)> open, detail::Begins begins,
                          const StreamOptions& options);
StreamNodePtr dataset_node(const Dataset& dataset);
StreamNodePtr taken_node(StreamNodePtr below, std::int64_t count);
StreamNodePtr skipped_node(StreamNodePtr below, std::int64_t count);
StreamNodePtr repeated_node(StreamNodePtr below, std::optional<std::int64_t> times);
StreamNodePtr shuffled_node(StreamNodePtr below, std::int64_t window, std::uint64_t seed, const WindowOptions& options);
/// `keep` gives True of samples that stay.
StreamNodePtr filtered_node(const SampleStream& below, UserFunction keep);
StreamNodePtr mixed_node(const std::vector<SampleStream>& parts, const std::vector<double>& weights,
                         const MixOptions& options);

/// A walk that gives whole samples: what maps and transforms make of them. Of several that share a stream, walk r of n
/// gives samples r, r + n, .... `keeps_order`: CallContext::keeps_order.
class StreamWalk {
 public:
  explicit StreamWalk(const SampleStream& stream, const EpochSeed& seed = {}, std::int64_t part = 0,
                      std::int64_t parts = 1, bool keeps_order = false);
  std::optional<Value> next();

 private:
  StreamItemPtr next_item();

  SampleStream stream_;
  std::unique_ptr<StreamReader> reader_;
  std::int64_t parts_;
  std::int64_t before_;  ///< samples to pass by
  StreamItemPtr item_;   ///< taken, and still to be given
  Workspace own_;
};

}  // namespace penstock::data
