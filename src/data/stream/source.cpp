// Where a stream begins: a function of the program that gives sample after sample. A call counts as a sample that was
// read whether it gave one or threw, so that a walk that is repeated comes to the same place.
//
// A call that is interrupted (Ctrl-C) counts as none. What was interrupted may have lost the sample it was making, and
// a generator of Python's is at its end then. So the source begins anew and is read up to where it was, as it is for a
// resumed loader. It has to give the same again, which the sample before the interruption tells. A source that gives
// its samples once is asked to go on, and its end is an error.
#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "data/dataset/samples_name.h"
#include "data/read_sample.h"
#include "data/sample/runner.h"
#include "data/sample/user_call.h"
#include "data/sample/value_samples.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

constexpr const char* kWho = "the stream's function";

/// What gives the samples behind so many. `keeps_order`: CallContext::keeps_order. That and the seed are for samples
/// that are read here.
using Open = std::function<detail::NextSample(std::int64_t start, const EpochSeed& seed, bool keeps_order)>;

class SourceReader final : public StreamReader {
 public:
  SourceReader(Open open, const EpochSeed& seed, detail::Begins begins, std::string name)
      : open_(std::move(open)), seed_(seed), begins_(begins), name_(std::move(name)) {}

  StreamItemPtr next(const Work& work) override {
    work.call.check_cancelled();
    if (ended_) return nullptr;
    const RunnerScope own(nullptr);  // the source stays with the thread that reads
    try {
      if (!next_) begin(work.call);
      std::optional<Value> value = called();
      if (!value) {
        ended_ = true;
        if (interrupted_) throw_lost();
        return nullptr;
      }
      interrupted_ = false;
      require_some(*value, kWho);
      if (begins_ == detail::Begins::kAnew) last_ = *value;
      return std::make_shared<StreamItem>(StreamItem{.number = read_++, .value = std::move(*value)});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) {
        if (begins_ != detail::Begins::kOnce) next_ = nullptr;
        interrupted_ = begins_ == detail::Begins::kOnce;
        throw;
      }
      last_.reset();
      const std::int64_t number = read_++;
      const std::string what = core::format("{}[{}]", name_, number);
      throw error.prefixed(core::format("sample {} ({}): ", number, core::escaped(what)));
    }
  }

  bool seek(std::int64_t read) override {
    if (begins_ != detail::Begins::kAnywhere) return false;
    read_ = read;
    next_ = nullptr;
    ended_ = false;
    return true;
  }
  std::int64_t read() const noexcept override { return read_; }

 private:
  /// Opens the source where it was read up to.
  void begin(const CallContext& call) {
    const bool anywhere = begins_ == detail::Begins::kAnywhere;
    next_ = opened(anywhere ? read_ : 0, call.keeps_order);
    if (anywhere) return;
    std::optional<Value> passed;
    for (std::int64_t i = 0; i < read_; ++i) {
      call.check_cancelled();
      passed = this->passed();
      if (ended_) break;
    }
    const bool as_before = !ended_ && (!last_ || (passed && are_alike(*passed, *last_)));
    if (as_before) return;
    ended_ = true;
    throw Error(
        ErrorCode::kChanged,
        core::format("it was interrupted, and begun anew it gives other samples than before; go on with the "
                     "beginning of an epoch, or give stream() a function that makes the same samples each time"));
  }

  /// The next sample of those that were read already; none for one that throws, and at the end.
  std::optional<Value> passed() {
    try {
      std::optional<Value> value = called();
      ended_ = !value;
      return value;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      return std::nullopt;
    }
  }

  static bool are_alike(const Value& a, const Value& b) {
    std::vector<Tensor> of_a;
    std::vector<Tensor> of_b;
    collect_tensors(a, of_a);
    collect_tensors(b, of_b);
    return a.to_string() == b.to_string() &&
           std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), Tensor::identical);
  }

  [[noreturn]] static void throw_lost() {
    throw Error(ErrorCode::kInvalidArgument,
                "it was interrupted and has ended by that, so that the samples from here on are lost; give stream() a "
                "function that makes what gives the samples, which can be begun anew");
  }

  detail::NextSample opened(std::int64_t start, bool keeps_order) {
    try {
      return open_(start, seed_, keeps_order);
    } catch (...) {
      try {
        rethrow_as_error(kWho);
      } catch (const Error& error) {
        ended_ = error.code() != ErrorCode::kCancelled;  // or a loop that goes on behind errors would never end
        throw;
      }
    }
  }
  std::optional<Value> called() const {
    try {
      return next_();
    } catch (...) {
      rethrow_as_error(kWho);
    }
  }

  Open open_;
  EpochSeed seed_;
  detail::Begins begins_;
  std::string name_;
  detail::NextSample next_;  ///< none before the first call, and when it has to begin anew
  std::int64_t read_ = 0;
  std::optional<Value> last_;  ///< the sample before, where it may be read again
  bool interrupted_ = false;   ///< and asked to go on all the same
  bool ended_ = false;
};

class SourceNode : public StreamNode {
 public:
  SourceNode(Open open, detail::Begins begins, std::string name)
      : open_(std::move(open)), begins_(begins), name_(std::move(name)) {}

  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    if (!can_begin_again() && is_begun_.exchange(true)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          core::format("{} can be read once, and that has begun; for epochs, and to go on from a position, give "
                       "stream() a function that makes what gives the samples",
                       core::escaped(name_)));
    }
    return std::make_unique<SourceReader>(open_, seed, begins_, name_);
  }
  bool can_begin_again() const noexcept override { return begins_ != detail::Begins::kOnce; }
  std::string name() const override { return name_; }

 private:
  Open open_;
  detail::Begins begins_;
  std::string name_;
  mutable std::atomic<bool> is_begun_{false};
};

/// The samples of a dataset in their order, with the random numbers that a loader of it draws.
class DatasetNode final : public SourceNode {
 public:
  explicit DatasetNode(const Dataset& dataset)
      : SourceNode([dataset](std::int64_t start, const EpochSeed& seed,
                             bool order) { return samples_from(dataset, start, seed, order); },
                   detail::Begins::kAnywhere, "<dataset>"),
        dataset_(dataset) {}

  std::string identity() const override { return samples_name(dataset_); }

 private:
  static detail::NextSample samples_from(const Dataset& dataset, std::int64_t start, const EpochSeed& seed,
                                         bool keeps_order) {
    return [dataset, index = start, seed, keeps_order]() mutable -> std::optional<Value> {
      if (index >= dataset.size()) return std::nullopt;
      return read_sample(dataset, index++, keeps_order, seed);
    };
  }

  Dataset dataset_;
};

}  // namespace

StreamNodePtr source_node(std::function<detail::NextSample(std::int64_t)> open, detail::Begins begins,
                          const StreamOptions& options) {
  Open from_start = [f = std::move(open)](std::int64_t start, const EpochSeed&, bool) { return f(start); };
  return std::make_shared<SourceNode>(std::move(from_start), begins, options.name);
}

StreamNodePtr dataset_node(const Dataset& dataset) { return std::make_shared<DatasetNode>(dataset); }

}  // namespace penstock::data
