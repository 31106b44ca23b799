// The samples that a function of the program keeps, as they come. It sees what maps and transforms made of a sample;
// what it keeps is that, with the sample's number, so that nothing is made twice.
#include <utility>

#include "data/dataset_impl.h"
#include "data/sample/require_samples.h"
#include "data/sample/user_call.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

using Keep = std::function<bool(const Value&)>;

class FilteredReader final : public StreamReader {
 public:
  FilteredReader(SampleStream below, Keep keep, const EpochSeed& seed)
      : below_(std::move(below)), keep_(std::move(keep)), reader_(below_.node()->open(seed)) {}

  StreamItemPtr next(const Work& work) override {
    while (item_ || (item_ = reader_->next(work))) {
      const std::int64_t number = item_->number;
      Value value;
      const bool is_wanted = judged(value, work);
      item_ = nullptr;
      if (is_wanted) return std::make_shared<StreamItem>(StreamItem{.number = number, .value = std::move(value)});
    }
    return nullptr;
  }
  std::int64_t read() const noexcept override { return reader_->read(); }

 private:
  /// Makes the value of item_, and whether it is kept. Only what was stopped leaves item_ for the next call.
  bool judged(Value& value, const Work& work) {
    const auto fail = [this](const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw error;
      throw SampleError(static_cast<std::size_t>(std::exchange(item_, nullptr)->number), error);
    };
    try {
      value = made_of(below_, item_, work);
      return is_kept(value);
    } catch (const SampleError& error) {
      fail(error.error());
    } catch (const Error& error) {
      fail(error);
    }
    return false;
  }
  bool is_kept(const Value& value) const {
    try {
      return keep_(value);
    } catch (...) {
      rethrow_as_error("the function of filter");
    }
  }

  SampleStream below_;
  Keep keep_;
  std::unique_ptr<StreamReader> reader_;
  StreamItemPtr item_;  ///< taken, and not judged yet
};

class Filtered final : public StreamNode {
 public:
  Filtered(SampleStream below, Keep keep) : below_(std::move(below)), keep_(std::move(keep)) {}

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
  Keep keep_;
};

}  // namespace

StreamNodePtr filtered_node(const SampleStream& below, Keep keep) {
  require_samples(below.samples(), "filter");
  return std::make_shared<Filtered>(below, std::move(keep));
}

}  // namespace penstock::data
