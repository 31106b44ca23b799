#include "io/remote/traffic.h"

#include <algorithm>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock {
namespace io::remote {
namespace {

thread_local TrafficMeter* current_meter = nullptr;

}  // namespace

void TrafficMeter::add(const RemoteTraffic& traffic) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    total_ += traffic;
    has_some_.store(true, std::memory_order_release);
  }
  if (around_ != nullptr) around_->add(traffic);
}

RemoteTraffic TrafficMeter::total() const noexcept {
  if (!has_some_.load(std::memory_order_acquire)) return {};
  const std::scoped_lock lock(mutex_);
  return total_;
}

TrafficScope::TrafficScope(TrafficMeter* meter) noexcept : before_(current_meter) { current_meter = meter; }
TrafficScope::~TrafficScope() { current_meter = before_; }
TrafficMeter* TrafficScope::current() noexcept { return current_meter; }

void note_traffic(const RemoteTraffic& traffic) noexcept {
  if (current_meter != nullptr) current_meter->add(traffic);
}

}  // namespace io::remote

RemoteTraffic& RemoteTraffic::operator+=(const RemoteTraffic& other) noexcept {
  requests += other.requests;
  retries += other.retries;
  hedges += other.hedges;
  throttled += other.throttled;
  received_bytes += other.received_bytes;
  cached_bytes += other.cached_bytes;
  first_byte_seconds += other.first_byte_seconds;
  transfer_seconds += other.transfer_seconds;
  paused_seconds += other.paused_seconds;
  at_once = std::max(at_once, other.at_once);
  return *this;
}

const std::string_view RemoteTraffic::limit() const noexcept {
  if (requests == 0) return "nothing";
  // A client that is sent away is slowed down by its pauses; a refusal now and then is not what limits it.
  const double waited = first_byte_seconds + transfer_seconds;
  if (throttled > 0 && (paused_seconds > waited || throttled * 10 > requests)) return "throttled";
  return first_byte_seconds > transfer_seconds ? "latency" : "bandwidth";
}

std::string RemoteTraffic::to_string() const {
  std::string text;
  if (requests > 0) {
    text = core::format(
        "{} by URL ({}, {} throttled) brought {}, on average {:.1f} ms to the first byte; the limit is {}",
        core::counted(requests, "request"), core::counted(retries, "retry", "retries"), throttled,
        core::format_bytes(received_bytes), 1e3 * first_byte_seconds / static_cast<double>(requests), limit());
  }
  if (cached_bytes > 0) {
    text += core::format("{}{} came from the disk cache", text.empty() ? "" : "; ", core::format_bytes(cached_bytes));
  }
  return text;
}

}  // namespace penstock
