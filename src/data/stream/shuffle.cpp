// A window of samples is kept full, and each sample is drawn from it: when it is taken, the next one of the stream
// comes to its place. Draw i is block i of Philox under a key of both seeds and the epoch, so that the order depends on
// nothing else. Samples keep their numbers.
#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/stream/cell.h"
#include "data/stream/node.h"
#include "device/host_memory.h"
#include "ops/philox.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

class ShuffledReader final : public StreamReader {
 public:
  ShuffledReader(std::unique_ptr<StreamReader> below, std::int64_t size, std::uint64_t key, std::uint64_t memory)
      : below_(std::move(below)), size_(static_cast<std::size_t>(size)), key_(key), memory_(memory) {}

  StreamItemPtr next(const Work& work) override {
    fill(work);
    if (window_.empty()) return nullptr;
    StreamItemPtr& drawn = window_[draw()];
    StreamItemPtr out = std::exchange(drawn, window_.back());
    window_.pop_back();
    bytes_ -= bytes_of(*out);
    return out;
  }
  std::int64_t read() const noexcept override { return below_->read(); }

 private:
  void fill(const Work& work) {
    while (!ended_ && window_.size() < size_) {
      StreamItemPtr item = below_->next(work);
      ended_ = item == nullptr;
      if (ended_) return;
      bytes_ += bytes_of(*item);
      window_.push_back(std::move(item));
      if (bytes_ > memory_) refuse();
    }
  }

  [[noreturn]] void refuse() {
    const std::size_t held = window_.size();
    const std::uint64_t bytes = std::exchange(bytes_, 0);
    window_.clear();  // the memory is wanted elsewhere
    ended_ = true;
    throw Error(
        ErrorCode::kOutOfMemory,
        core::format("{} of the {} samples of a shuffle's window take {}, and it may hold {}; use a smaller window, "
                     "or shuffle what makes the samples (names of files) in place of them",
                     held, size_, core::format_bytes(bytes), core::format_bytes(memory_)));
  }

  std::size_t draw() { return static_cast<std::size_t>(ops::philox(key_, drawn_++).low() % window_.size()); }

  std::unique_ptr<StreamReader> below_;
  std::size_t size_;
  std::uint64_t key_;
  std::uint64_t memory_;
  std::vector<StreamItemPtr> window_;
  std::uint64_t bytes_ = 0;
  std::uint64_t drawn_ = 0;
  bool ended_ = false;
};

class Shuffled final : public StreamOver {
 public:
  Shuffled(StreamNodePtr below, std::int64_t window, std::uint64_t seed, std::optional<std::uint64_t> memory)
      : StreamOver(std::move(below)), window_(window), seed_(seed), memory_(memory) {}

  std::unique_ptr<StreamReader> open(const EpochSeed& seed) const override {
    const std::uint64_t of_loader = ops::philox(seed_, seed.seed).low();
    const std::uint64_t key = ops::philox(of_loader, seed.epoch).high();
    const std::uint64_t memory = memory_ ? *memory_ : device::host_memory().total_bytes / 2;
    return std::make_unique<ShuffledReader>(below_->open(seed), window_, key, memory);
  }
  Dataset samples() const override { return below_->samples(); }

 private:
  std::int64_t window_;
  std::uint64_t seed_;
  std::optional<std::uint64_t> memory_;
};

}  // namespace

StreamNodePtr shuffled_node(StreamNodePtr below, std::int64_t window, std::uint64_t seed,
                            const WindowOptions& options) {
  if (window < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the window of a shuffle is {} samples; it must be 1 or more", window));
  }
  if (options.memory && *options.memory < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the memory of a shuffle is {} bytes; it must be 0 or more", *options.memory));
  }
  return std::make_shared<Shuffled>(std::move(below), window, seed, options.memory);
}

}  // namespace penstock::data
