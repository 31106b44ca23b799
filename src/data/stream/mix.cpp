// A mixture of streams. Whose turn it is follows from the weights alone (Turns). A stream that has ended is noticed
// when it is its turn, because nobody knows before.
#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/dataset/samples_name.h"
#include "data/dataset/turns.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "ops/philox.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

using core::refuse;

class MixedReader final : public StreamReader {
 public:
  MixedReader(const std::vector<SampleStream>& parts, const std::vector<double>& shares, const MixOptions& options,
              const EpochSeed& seed)
      : turns_(shares), options_(options), seed_(seed) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts_.push_back({.node = parts[i].node()});
      if (shares[i] == 0) continue;
      parts_[i].reader = parts_[i].node->open(seed_of(i, 0));
      ++unfinished_;
    }
  }

  StreamItemPtr next(const Work& work) override {
    while (!ended_) {
      ended_ = options_.size && number_ >= *options_.size;
      if (ended_) break;
      if (!turn_) turn_ = turns_.next();
      MixedStream& part = parts_[*turn_];
      // What throws has had its turn, unless it was stopped.
      StreamItemPtr item;
      try {
        item = part.reader->next(work);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCancelled) turn_.reset();
        throw;
      } catch (const SampleError& error) {
        turn_.reset();
        throw renumbered(error, part.node->name(), number_++);
      }
      if (item) return given(std::move(item));
      end_of(part);
    }
    return nullptr;
  }

  std::int64_t read() const noexcept override {
    std::int64_t out = 0;
    for (const MixedStream& part : parts_) out += part.read + (part.reader ? part.reader->read() : 0);
    return out;
  }

 private:
  struct MixedStream {
    StreamNodePtr node;
    std::unique_ptr<StreamReader> reader = {};  ///< null for a weight of 0
    std::int64_t read = 0;                      ///< in passes before this one
    std::int64_t pass = 0;
    bool gives = false;  ///< some in this pass
  };

  StreamItemPtr given(StreamItemPtr item) {
    const std::size_t from = *std::exchange(turn_, std::nullopt);
    parts_[from].gives = true;
    return std::make_shared<StreamItem>(StreamItem{.number = number_++, .part = from, .inner = std::move(item)});
  }

  /// A part has ended in its turn: so does the mixture, or the part begins again.
  void end_of(MixedStream& part) {
    if (part.pass == 0) --unfinished_;
    ended_ = true;  // also where it throws
    if (!options_.size && (options_.end == MixEnd::kFirst || unfinished_ == 0)) return;
    if (!part.gives) {
      refuse(core::format("stream {} of the mixture ({}) gave no samples, but it is its turn; leave it out", *turn_,
                          core::escaped(part.node->name())));
    }
    part.read += part.reader->read();
    part.reader = part.node->open(seed_of(*turn_, ++part.pass));
    part.gives = false;
    ended_ = false;
  }

  /// Streams of one kind are shuffled apart, and anew in each pass.
  EpochSeed seed_of(std::size_t part, std::int64_t pass) const noexcept {
    const std::uint64_t of_part = ops::philox(seed_.seed, part).low();
    return {.seed = ops::philox(of_part, static_cast<std::uint64_t>(pass)).high(), .epoch = seed_.epoch};
  }

  Turns turns_;
  MixOptions options_;
  EpochSeed seed_;
  std::vector<MixedStream> parts_;
  std::size_t unfinished_ = 0;
  std::optional<std::size_t> turn_;  ///< whose it is, until it has given
  std::int64_t number_ = 0;
  bool ended_ = false;
};

class Mixed final : public StreamNode {
 public:
  Mixed(std::vector<SampleStream> parts, std::vector<double> shares, const MixOptions& options)
      : parts_(std::move(parts)), shares_(std::move(shares)), options_(options) {}

  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    return std::make_unique<MixedReader>(parts_, shares_, options_, seed);
  }
  bool can_begin_again() const noexcept override {
    return std::all_of(parts_.begin(), parts_.end(), [](const SampleStream& part) { return part.can_begin_again(); });
  }
  std::string name() const override { return "<mixture>"; }
  std::string identity() const override {
    std::string out = name();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      out += core::format("{} {} of {}", i == 0 ? ":" : ",", shares_[i], ends_of_names(parts_[i].node()->identity()));
    }
    return out;
  }
  Dataset samples() const override { return mixed_cell(name(), parts_); }

 private:
  std::vector<SampleStream> parts_;
  std::vector<double> shares_;
  MixOptions options_;
};

}  // namespace

StreamNodePtr mixed_node(const std::vector<SampleStream>& parts, const std::vector<double>& weights,
                         const MixOptions& options) {
  std::vector<double> shares = shares_of(parts.size(), "stream", weights);
  for (const SampleStream& part : parts) require_samples(part.samples(), "mix");
  if (options.size && *options.size < 0) {
    refuse(core::format("the number of samples of a mixture is {}; it must be 0 or more", *options.size));
  }
  return std::make_shared<Mixed>(parts, std::move(shares), options);
}

}  // namespace penstock::data
