// Where a stream begins: a function of the program that gives sample after sample. A call counts as a sample that was
// read whether it gave one or threw, so that a walk that is repeated comes to the same place.
#include <atomic>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/sample/user_call.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

constexpr const char* kWho = "the stream's function";

using Open = std::function<detail::NextSample(std::int64_t)>;

class SourceReader final : public StreamReader {
 public:
  SourceReader(Open open, bool anywhere, std::string name)
      : open_(std::move(open)), anywhere_(anywhere), name_(std::move(name)) {}

  StreamItemPtr next(Scratch& scratch) override {
    scratch.check_cancelled();
    if (ended_) return nullptr;
    try {
      if (!next_) next_ = opened();
      std::optional<Value> value = called();
      ended_ = !value;
      if (ended_) return nullptr;
      require_some(*value, kWho);
      return std::make_shared<StreamItem>(StreamItem{.number = read_++, .value = std::move(*value)});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      const std::int64_t number = read_++;
      const std::string what = core::format("{}[{}]", name_, number);
      throw error.prefixed(core::format("sample {} ({}): ", number, core::escaped(what)));
    }
  }

  bool seek(std::int64_t read) override {
    if (!anywhere_) return false;
    read_ = read;
    next_ = nullptr;
    ended_ = false;
    return true;
  }
  std::int64_t read() const noexcept override { return read_; }

 private:
  detail::NextSample opened() {
    try {
      return open_(read_);
    } catch (...) {
      ended_ = true;  // or a loop that goes on behind errors would never end
      rethrow_as_error(kWho);
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
  bool anywhere_;
  std::string name_;
  detail::NextSample next_;  ///< none before the first call
  std::int64_t read_ = 0;
  bool ended_ = false;
};

class Source final : public StreamNode {
 public:
  Source(Open open, detail::Begins begins, std::string name)
      : open_(std::move(open)), begins_(begins), name_(std::move(name)) {}

  std::unique_ptr<StreamReader> open(const EpochSeed&) const override {
    if (!can_begin_again() && is_begun_.exchange(true)) {
      throw Error(
          ErrorCode::kInvalidArgument,
          core::format("{} can be read once, and that has begun; for epochs, and to go on from a position, give "
                       "stream() a function that makes what gives the samples",
                       core::escaped(name_)));
    }
    return std::make_unique<SourceReader>(open_, begins_ == detail::Begins::kAnywhere, name_);
  }
  bool can_begin_again() const noexcept override { return begins_ != detail::Begins::kOnce; }
  std::string name() const override { return name_; }

 private:
  Open open_;
  detail::Begins begins_;
  std::string name_;
  mutable std::atomic<bool> is_begun_{false};
};

}  // namespace

StreamNodePtr source_node(Open open, detail::Begins begins, const StreamOptions& options) {
  return std::make_shared<Source>(std::move(open), begins, options.name);
}

}  // namespace penstock::data
