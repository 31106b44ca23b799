// The samples that a function of the program keeps, as they come. It sees what maps and transforms made of a sample;
// what it keeps is that, with the sample's number, so that nothing is made twice.
//
// Where functions are called by a runner, several samples are read before they are judged, because a way there costs
// more than most functions. Each of them notes how far the stream had been read by then, so that positions are the
// same.
#include <chrono>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "data/dataset/map.h"
#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"
#include "data/sample/runner.h"
#include "data/sample/user_call.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

class FilteredReader final : public StreamReader {
 public:
  FilteredReader(SampleStream below, UserFunction keep, const EpochSeed& seed)
      : below_(std::move(below)), keep_(std::move(keep)), reader_(below_.node()->open(seed)) {}

  StreamItemPtr next(const Work& work) override {
    while (true) {
      if (judged_.empty()) {
        read_on(work);
        judge(work);
      }
      read_ = judged_.front().read;
      if (judged_.front().is_end) return nullptr;
      const Judged one = std::move(judged_.front());
      judged_.pop_front();
      if (one.error) std::rethrow_exception(one.error);
      if (one.item) return one.item;
    }
  }
  std::int64_t read() const noexcept override { return read_; }

 private:
  struct Judged {
    std::int64_t read = 0;  ///< StreamReader::read by then
    bool is_end = false;
    StreamItemPtr item = {};  ///< null where it is not kept
    std::exception_ptr error = {};
  };

  /// Has samples in window_, or what came in their place in behind_.
  void read_on(const Work& work) {
    constexpr std::size_t kMost = 256;
    constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 20;
    constexpr std::chrono::milliseconds kPatience{20};  // a source that takes longer is not waited for
    if (!window_.empty() || behind_) return;
    const bool several = RunnerScope::current() != nullptr;
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t bytes = 0;
    do {
      try {
        StreamItemPtr item = reader_->next(work);
        if (item) bytes += several ? bytes_of(*item) : 0;
        if (!item) behind_ = Judged{.read = reader_->read(), .is_end = true};
        if (item) window_.push_back({.read = reader_->read(), .item = std::move(item)});
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kCancelled) {
          if (window_.empty()) throw;
          return;  // whoever goes on comes to it again
        }
        behind_ = Judged{.read = reader_->read(), .error = std::current_exception()};
      } catch (const SampleError&) {
        behind_ = Judged{.read = reader_->read(), .error = std::current_exception()};
      }
    } while (several && !behind_ && window_.size() < kMost && bytes < kMostBytes &&
             std::chrono::steady_clock::now() - begin < kPatience);
  }

  /// Moves window_ and behind_ to judged_. Only what was stopped leaves the samples for the next call.
  void judge(const Work& work) {
    Runner* const runner = RunnerScope::current();
    std::optional<std::vector<Called>> called;
    if (runner != nullptr && !window_.empty()) called = judged_there(*runner, work);
    for (std::size_t i = 0; !window_.empty(); ++i) {
      Called one = called ? std::move((*called)[i]) : judged_here(window_.front().item, work);
      if (one.error && one.error->code() == ErrorCode::kCancelled) {
        if (judged_.empty()) throw Error(*one.error);
        return;  // it comes again behind those that are judged
      }
      take(one);
    }
    if (behind_) judged_.push_back(*std::exchange(behind_, std::nullopt));
  }

  std::optional<std::vector<Called>> judged_there(Runner& runner, const Work& work) const {
    std::vector<StreamItemPtr> items;
    std::vector<std::int64_t> numbers;
    for (const Judged& one : window_) {
      items.push_back(one.item);
      numbers.push_back(one.item->number);
    }
    StreamItems at_hand(items);
    CallContext call = work.call;
    call.items = &at_hand;
    call.sets_aside = true;  // those behind a bad one are judged all the same
    return judged_by(runner, below_.samples(), keep_, numbers, work.with(call));
  }

  Called judged_here(const StreamItemPtr& item, const Work& work) const {
    Called out;
    try {
      out.value = made_of(below_, item, work);
      out.left_out = !call_user("the function of filter", [&] { return keep_(out.value, {}); }).as_bool();
    } catch (const SampleError& error) {
      out.error = error.error();
    } catch (const Error& error) {
      out.error = error;
    }
    return out;
  }

  /// What became of the first sample of window_.
  void take(Called& called) {
    const Judged& first = window_.front();
    const std::int64_t number = first.item->number;
    Judged done{.read = first.read};
    if (called.error) {
      done.error = std::make_exception_ptr(SampleError(static_cast<std::size_t>(number), *called.error));
    } else if (!called.left_out) {
      done.item = std::make_shared<StreamItem>(StreamItem{.number = number, .value = std::move(called.value)});
    }
    judged_.push_back(std::move(done));
    window_.pop_front();
  }

  SampleStream below_;
  UserFunction keep_;
  std::unique_ptr<StreamReader> reader_;
  std::deque<Judged> window_;     ///< read, and not judged yet
  std::optional<Judged> behind_;  ///< what came behind them: the end, or an error
  std::deque<Judged> judged_;     ///< for the next calls
  std::int64_t read_ = 0;
};

class Filtered final : public StreamNode {
 public:
  Filtered(SampleStream below, UserFunction keep) : below_(std::move(below)), keep_(std::move(keep)) {}

  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    return std::make_unique<FilteredReader>(below_, keep_, seed);
  }
  bool can_begin_again() const noexcept override { return below_.can_begin_again(); }
  std::string name() const override { return below_.node()->name(); }
  std::string identity() const override { return below_.node()->identity(); }
  Dataset samples() const override {
    const detail::DatasetImpl& done = below_.samples().impl();
    return stream_cell(name(), done.draws(), done.random_stages());
  }

 private:
  SampleStream below_;
  UserFunction keep_;
};

}  // namespace

StreamNodePtr filtered_node(const SampleStream& below, UserFunction keep) {
  require_samples(below.samples(), "filter");
  return std::make_shared<Filtered>(below, std::move(keep));
}

}  // namespace penstock::data
