// A stream gives its samples in one order, which nobody knows in advance. So the order of an epoch is that of the
// batches' numbers, without end, and a StreamFeed says what is in them and where the epoch has ended.

#include <utility>

#include "core/refuse.h"
#include "data/dataset/samples_name.h"
#include "data/dataset_impl.h"
#include "data/loader/batch_origin.h"
#include "data/loader/dealing.h"
#include "data/stream/feed.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock::data {

namespace {

void require(bool holds, const char* message) {
  if (!holds) core::refuse(message);
}

class StreamedBatches final : public BatchOrigin {
 public:
  StreamedBatches(SampleStream stream, const LoaderOptions& options, BatchMaker& maker)
      : stream_(std::move(stream)),
        options_(options),
        maker_(maker),
        numbers_(ordered_batches(stream_.samples(), as_endless(options))) {}

  std::optional<std::int64_t> batches() const override { return std::nullopt; }
  std::int64_t samples() const override { return 0; }
  std::string dataset() const override { return ends_of_names(stream_.node()->identity()); }
  std::int64_t replicas() const override { return options_.ranks ? std::int64_t{options_.ranks->size} : 1; }
  std::string order() const override { return "stream"; }
  void describe(LoaderPosition& position, const Standing&) const override {
    position.read = place_.read;
    position.held = place_.held;
  }
  /// A source that gives its samples once cannot go back.
  void require(const LoaderPosition& position, const Standing& here) const override {
    const bool stays = here == Standing{{position.seed, position.epoch}, position.batch};
    if (!feed_ || stays || stream_.can_begin_again()) return;
    core::refuse(
        "the stream can be read once, and that has begun, so that the loader cannot go to another position; give "
        "stream() a function that makes what gives the samples, or make a new loader of a new stream");
  }
  void go(const Standing& from, const Standing& to) override {
    numbers_->go(from, to);
    if (from == to) return;
    maker_.take_from(nullptr);
    feed_ = nullptr;
    place_ = {};
  }
  void resume(const LoaderPosition& position) override { place_ = {.read = position.read, .held = position.held}; }
  std::shared_ptr<const BatchOrder> begin(const Standing& here) override {
    auto order = numbers_->begin(here);
    if (!feed_) begin_feed(here);
    return order;
  }
  bool take(std::int64_t number) override {
    const bool ended = feed_->ends_at(number);
    place_ = feed_->forget(number);
    return ended;
  }
  void mark(Batch& batch, std::int64_t) const override {
    if (options_.remainder != Remainder::kExact || batch.valid.defined() || batch.size() == 0) return;
    batch.valid = full(Shape{batch.size()}, true, DType::boolean);
  }

 private:
  void begin_feed(const Standing& here) {
    const auto set_aside = [&maker = maker_, epoch = here.of.epoch](std::int64_t number, const Error& error) {
      return maker.policy().set_aside(number, epoch, maker.dataset().impl().describe(number), error);
    };
    const StreamFeed::Start place{
        .seed = here.of, .batch = here.batch, .place = here.batch > 0 ? std::optional(place_) : std::nullopt};
    feed_ = std::make_shared<StreamFeed>(stream_, options_, place, set_aside);
    maker_.take_from(feed_);
  }

  const SampleStream stream_;
  const LoaderOptions options_;
  BatchMaker& maker_;
  std::unique_ptr<BatchOrigin> numbers_;
  std::shared_ptr<StreamFeed> feed_;  ///< of the epoch at hand, once begun
  StreamPlace place_;                 ///< LoaderPosition::read and held
};

}  // namespace

LoaderOptions as_endless(LoaderOptions options) {
  require(
      !options.shuffle,
      "a stream comes in its own order, so shuffle cannot reorder all of it; give it a window: stream.shuffle(1000)");
  require(!options.sampler && !options.batch_sampler, "a stream comes in its own order, and takes no sampler");
  require(options.on_error == OnError::kRaise || options.on_error == OnError::kSkip,
          "a stream has no other sample to put in the place of a bad one; use on_error \"raise\" or \"skip\"");
  require(!options.ranks || options.ranks->size < 2 || options.on_error == OnError::kRaise,
          "on_error \"skip\" may leave a batch out on one rank alone, and the others would wait for it; use \"raise\" "
          "with several ranks");
  require_dealing(options);
  options.ranks.reset();
  options.remainder = Remainder::kPad;
  return options;
}

std::unique_ptr<BatchOrigin> streamed_batches(const SampleStream& stream, const LoaderOptions& options,
                                              BatchMaker& maker) {
  return std::make_unique<StreamedBatches>(stream, options, maker);
}

}  // namespace penstock::data
