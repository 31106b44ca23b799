// Each thread takes the next part, computes its checksum and waits for the store; libcurl's one thread (reactor.h)
// moves the bytes of all of them. When a part fails for good, the others are dropped, and whoever fills hears of it.

#include "io/remote/part_sender.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/stop_scope.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// Parts up to this number have one size; each step behind it doubles that.
constexpr std::size_t kEven = 8'000;
constexpr std::size_t kStep = 250;
constexpr std::uint64_t kMega = std::uint64_t{1} << 20;

}  // namespace

std::size_t part_size(std::size_t number, std::uint64_t expected) noexcept {
  const std::uint64_t even = (expected / kEven + kMega) / kMega * kMega;
  const std::uint64_t base = std::max<std::uint64_t>(kLeastPart, even);
  return number <= kEven ? base : base << ((number - kEven - 1) / kStep + 1);
}

PartSender::PartSender(const Location& object, std::string id, const std::stop_token& stop)
    : object_(object), id_(std::move(id)), stop_(stop) {}

PartSender::~PartSender() {
  {
    const std::scoped_lock lock(mutex_);
    ended_.request_stop();
    work_.notify_all();
  }
  for (std::thread& one : threads_) one.join();
}

template <class Ready>
void PartSender::wait(std::unique_lock<std::mutex>& lock, Ready ready) {
  while (!failure_ && !ready()) {
    if (stop_.stop_requested() || core::StopScope::stop_requested()) {
      throw Error(ErrorCode::kCancelled, "the upload was cancelled before it was complete", {.path = object_.shown});
    }
    sent_.wait_for(lock, core::kStopLook);
  }
  if (failure_) std::rethrow_exception(failure_);
}

std::vector<std::byte> PartSender::buffer() {
  std::unique_lock lock(mutex_);
  wait(lock, [this] { return held_ < kThreads; });
  std::vector<std::byte> out;
  if (!idle_.empty()) {
    out = std::move(idle_.back());
    idle_.pop_back();
  }
  return out;
}

void PartSender::send(std::vector<std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  if (parts_.size() == kMostParts) {
    throw Error(ErrorCode::kLimit, core::format("an object has no more than {} parts; write less into one", kMostParts),
                {.path = object_.shown});
  }
  parts_.emplace_back();
  add_task(parts_.size(), std::move(bytes));
}

void PartSender::leave_first() { parts_.emplace_back(); }

void PartSender::send_first(std::vector<std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  add_task(1, std::move(bytes));
}

/// Under the lock.
void PartSender::add_task(std::size_t number, std::vector<std::byte> bytes) {
  ++held_;
  tasks_.push_back({number, std::move(bytes)});
  work_.notify_one();
  if (threads_.size() < std::min(kThreads, parts_.size() - done_)) threads_.emplace_back([this] { run(); });
}

std::vector<UploadedPart> PartSender::finish() {
  std::unique_lock lock(mutex_);
  wait(lock, [this] { return done_ == parts_.size(); });
  idle_.clear();
  return parts_;
}

void PartSender::run() {
  const std::stop_token ended = ended_.get_token();
  const core::StopScope scope(ended);
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return ended.stop_requested() || !tasks_.empty(); });
    if (ended.stop_requested()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    UploadedPart part;
    std::exception_ptr failure;
    try {
      part = put_part(object_, id_, task.number, task.bytes);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      // Those that the others are at are dropped; what they fail by then is not the reason.
      if (!failure_) failure_ = failure;
      ended_.request_stop();
      work_.notify_all();
    } else {
      parts_[task.number - 1] = std::move(part);
      ++done_;
    }
    task.bytes.clear();
    idle_.push_back(std::move(task.bytes));
    --held_;
    sent_.notify_one();
  }
}

}  // namespace penstock::io::remote
