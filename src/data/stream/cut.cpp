// The first samples of a stream, and all but the first.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/format.h"
#include "data/dataset_impl.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// `Reader` walks over what is left of a walk over those below.
template <class Reader>
class Cut final : public StreamOver {
 public:
  Cut(StreamNodePtr below, std::int64_t count) : StreamOver(std::move(below)), count_(count) {}
  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    return std::make_unique<Reader>(below_->open(seed), count_);
  }

 private:
  std::int64_t count_;
};

class TakenReader final : public StreamReader {
 public:
  TakenReader(std::unique_ptr<StreamReader> below, std::int64_t count)
      : below_(std::move(below)), count_(count), left_(count) {}

  StreamItemPtr next(const Work& work) override {
    if (left_ == 0) return nullptr;
    work.call.check_cancelled();  // before one is counted
    --left_;
    try {
      return below_->next(work);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) ++left_;
      throw;
    }
  }
  std::int64_t read() const noexcept override { return below_->read(); }
  std::int64_t offset() const noexcept override { return below_->offset(); }
  bool seek(std::int64_t read) override {
    const std::int64_t given = std::max<std::int64_t>(read - offset(), 0);
    if (given > count_ || !below_->seek(read)) return false;
    left_ = count_ - given;
    return true;
  }

 private:
  std::unique_ptr<StreamReader> below_;
  std::int64_t count_;
  std::int64_t left_;
};

class SkippedReader final : public StreamReader {
 public:
  SkippedReader(std::unique_ptr<StreamReader> below, std::int64_t count)
      : below_(std::move(below)), count_(count), left_(count) {}

  StreamItemPtr next(const Work& work) override {
    pass(work);
    StreamItemPtr item = below_->next(work);
    // A source that threw and has ended by that has not only lost samples that nobody wants.
    const std::optional<Error> met = std::exchange(met_, std::nullopt);
    if (!item && met) throw Error(*met);
    return item;
  }
  std::int64_t read() const noexcept override { return below_->read(); }
  std::int64_t offset() const noexcept override { return below_->offset() + count_; }
  bool seek(std::int64_t read) override {
    if (read < offset() || !below_->seek(read)) return false;
    left_ = 0;
    return true;
  }

 private:
  void pass(const Work& work) {
    if (left_ > 0 && below_->seek(offset())) left_ = 0;
    while (left_ > 0) {
      try {
        if (below_->next(work)) {
          met_.reset();
        } else {
          left_ = 1;  // it has ended
        }
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kCancelled) throw;
        met_ = error;
      } catch (const SampleError&) {
        // It is left out.
      }
      --left_;
    }
  }

  std::unique_ptr<StreamReader> below_;
  std::int64_t count_;
  std::int64_t left_;
  std::optional<Error> met_;  ///< what the source threw last, until it gives a sample
};

void require_count(std::int64_t count, const char* what) {
  if (count >= 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the number of samples to {} is {}; it must be 0 or more", what, count));
}

}  // namespace

StreamNodePtr taken_node(StreamNodePtr below, std::int64_t count) {
  require_count(count, "take");
  return std::make_shared<Cut<TakenReader>>(std::move(below), count);
}

StreamNodePtr skipped_node(StreamNodePtr below, std::int64_t count) {
  require_count(count, "skip");
  return std::make_shared<Cut<SkippedReader>>(std::move(below), count);
}

}  // namespace penstock::data
