#include "io/move/background_read.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "core/forks.h"
#include "core/stop_scope.h"
#include "io/remote/traffic.h"
#include "io/source/own_read.h"
#include "penstock/error.h"
#include "penstock/report.h"

namespace penstock::io {

struct BackgroundRead::State {
  State(Source from, std::size_t bytes)
      : source(std::move(from)), memory(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  Source source;
  std::unique_ptr<std::byte[]> memory;
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable is_over;
  bool over = false;
  std::optional<Error> error;
  RemoteTraffic traffic;  ///< that nobody was told of

  void read(std::uint64_t begin, std::size_t bytes) {
    std::optional<Error> met;
    remote::TrafficMeter meter;
    try {
      const std::stop_token token = stop.get_token();
      const core::StopScope scope(token);
      const remote::TrafficScope counted(&meter);
      read_own(*source, begin, {memory.get(), bytes});
    } catch (const Error& failure) {
      met = failure;
    }
    {
      const std::scoped_lock lock(mutex);
      error = std::move(met);
      traffic = meter.total();
      over = true;
    }
    is_over.notify_all();
  }
  /// Under the mutex, or when nobody else has it: requests belong to whoever waits for what they bring.
  void tell_traffic() noexcept { remote::note_traffic(std::exchange(traffic, {})); }
};

BackgroundRead::BackgroundRead(Source source, std::uint64_t begin, std::size_t bytes)
    : begin_(begin), bytes_(bytes), forks_(core::forks()), state_(std::make_shared<State>(std::move(source), bytes)) {
  start();
}

BackgroundRead::~BackgroundRead() {
  state_->stop.request_stop();
  if (!thread_.joinable()) return;
  if (forks_ != core::forks()) {
    thread_.detach();
  } else {
    thread_.join();
    state_->tell_traffic();
  }
}

void BackgroundRead::start() {
  try {
    thread_ = std::thread([state = state_, begin = begin_, bytes = bytes_] { state->read(begin, bytes); });
  } catch (const std::system_error&) {
    state_->read(begin_, bytes_);  // there are as many threads as there may be
  }
}

std::span<const std::byte> BackgroundRead::bytes() {
  if (forks_ != core::forks()) {
    forks_ = core::forks();
    // The mutex may have been held by the thread that stayed behind, for good.
    state_ = std::make_shared<State>(state_->source, bytes_);
    if (thread_.joinable()) thread_.detach();
    start();
  }
  std::unique_lock lock(state_->mutex);
  while (!state_->is_over.wait_for(lock, core::kStopLook, [&] { return state_->over; })) {
    if (core::StopScope::stop_requested()) throw Error(ErrorCode::kCancelled, "the read was stopped");
  }
  state_->tell_traffic();
  if (state_->error) throw *state_->error;
  return {state_->memory.get(), bytes_};
}

ReadFromFront::ReadFromFront(Source source, std::size_t piece, std::size_t ahead)
    : source_(std::move(source)), piece_(piece), ahead_(ahead) {
  ask();
}

void ReadFromFront::ask() {
  while (pieces_.size() < ahead_ && asked_ < source_.size()) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(piece_, source_.size() - asked_));
    pieces_.push_back(std::make_unique<BackgroundRead>(source_, asked_, bytes));
    asked_ += bytes;
  }
}

std::size_t ReadFromFront::read(std::span<std::byte> into) {
  if (pieces_.empty()) return 0;
  const std::span<const std::byte> held = pieces_.front()->bytes();
  const auto from = static_cast<std::size_t>(at_ - pieces_.front()->begin());
  const std::size_t count = std::min(into.size(), held.size() - from);
  std::memcpy(into.data(), held.data() + from, count);
  at_ += count;
  if (at_ == pieces_.front()->end()) {
    pieces_.pop_front();
    ask();
  }
  return count;
}

}  // namespace penstock::io
