// Progress is asked for by a scope and not by an option: it is the affair of the program's surface, and what it is told
// of is called from many places. A pointer of the thread says whom to tell; without one, nothing is counted.

#include "core/progress.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace core {
namespace {

constexpr std::chrono::milliseconds kPeriod{50};

ProgressMeter*& current_meter() noexcept {
  thread_local ProgressMeter* meter = nullptr;
  return meter;
}

}  // namespace

ProgressMeter* ProgressMeter::current() noexcept { return current_meter(); }

void ProgressMeter::advance(std::uint64_t bytes) {
  done_ += bytes;
  if (depth_ == 0 || std::this_thread::get_id() != owner_) return;
  if (const auto now = Clock::now(); now - told_ >= kPeriod) {
    told_ = now;
    tell();
  }
}

void ProgressMeter::tell() { function_(std::min<std::uint64_t>(done_, total_), total_); }

MeteredOperation::MeteredOperation() noexcept : meter_(ProgressMeter::current()) {
  if (meter_ != nullptr) is_outermost_ = meter_->depth_++ == 0;
}

MeteredOperation::~MeteredOperation() {
  if (meter_ != nullptr) --meter_->depth_;
}

void MeteredOperation::begin(std::uint64_t total) {
  if (!is_outermost_) return;
  meter_->done_ = 0;
  meter_->total_ = total;
  meter_->told_ = ProgressMeter::Clock::now();
}

void MeteredOperation::end() {
  if (!is_outermost_) return;
  meter_->done_ = meter_->total_;
  meter_->tell();
}

}  // namespace core

class Progress::Impl {
 public:
  explicit Impl(ProgressFunction function) : meter_(std::move(function)) {
    before_ = std::exchange(core::current_meter(), &meter_);
  }
  ~Impl() { core::current_meter() = before_; }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  core::ProgressMeter meter_;
  core::ProgressMeter* before_;
};

Progress::Progress(ProgressFunction function) : impl_(std::make_unique<Impl>(std::move(function))) {}
Progress::~Progress() = default;

}  // namespace penstock
