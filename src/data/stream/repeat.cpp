// A stream several times one behind the other. Samples are numbered on, so that random steps draw anew each time.
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/stream/node.h"
#include "ops/philox.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

class RepeatedReader final : public StreamReader {
 public:
  RepeatedReader(StreamNodePtr below, std::optional<std::int64_t> times, const EpochSeed& seed)
      : below_(std::move(below)), times_(times), seed_(seed) {
    if (times != 0) reader_ = below_->open(seed_);
  }

  StreamItemPtr next(const Work& work) override {
    while (reader_) {
      StreamItemPtr item;
      try {
        item = reader_->next(work);
      } catch (const SampleError& error) {
        throw renumbered(error, below_->name(), number_++);
      }
      if (item) {
        had_some_ = true;
        StreamItem out = *item;
        out.number = number_++;
        return std::make_shared<StreamItem>(std::move(out));
      }
      read_ += reader_->read();
      reader_ = nullptr;
      begin_again();
    }
    return nullptr;
  }
  std::int64_t read() const noexcept override { return read_ + (reader_ ? reader_->read() : 0); }

 private:
  void begin_again() {
    if (!times_ && !had_some_) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("{} gave no samples, so that there is nothing to repeat for "
                               "ever; say how many times",
                               core::escaped(below_->name())));
    }
    ++pass_;
    if (times_ && pass_ >= *times_) return;
    // Shuffles below draw anew.
    reader_ =
        below_->open({.seed = ops::philox(seed_.seed, static_cast<std::uint64_t>(pass_)).high(), .epoch = seed_.epoch});
    had_some_ = false;
  }

  StreamNodePtr below_;
  std::optional<std::int64_t> times_;
  EpochSeed seed_;
  std::unique_ptr<StreamReader> reader_;  ///< null at the end
  std::int64_t pass_ = 0;
  std::int64_t number_ = 0;
  std::int64_t read_ = 0;  ///< in passes before this one
  bool had_some_ = false;  ///< in this pass
};

class Repeated final : public StreamOver {
 public:
  Repeated(StreamNodePtr below, std::optional<std::int64_t> times) : StreamOver(std::move(below)), times_(times) {}
  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    return std::make_unique<RepeatedReader>(below_, times_, seed);
  }

 private:
  std::optional<std::int64_t> times_;
};

}  // namespace

StreamNodePtr repeated_node(StreamNodePtr below, std::optional<std::int64_t> times) {
  if (times && *times < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the number of repetitions is {}; it must be 0 or more", *times));
  }
  if (!below->can_begin_again() && times.value_or(2) > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} can be read once, so that it cannot be repeated; give stream() a function that makes "
                             "what gives the samples",
                             core::escaped(below->name())));
  }
  return std::make_shared<Repeated>(std::move(below), times);
}

}  // namespace penstock::data
