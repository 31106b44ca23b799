#pragma once

// How many bytes were copied in which direction and how long it took, for TransferStats (penstock/transfer.h).

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "penstock/device.h"

namespace penstock::device {

enum class Direction : std::uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice, kPeerToPeer, kHostToHost };

/// The direction of copies from memory of one device to that of another.
constexpr Direction direction_of(Device from, Device to) noexcept {
  const bool host_from = from.type == DeviceType::kCpu;
  const bool host_to = to.type == DeviceType::kCpu;
  if (host_from) return host_to ? Direction::kHostToHost : Direction::kHostToDevice;
  if (host_to) return Direction::kDeviceToHost;
  return from == to ? Direction::kDeviceToDevice : Direction::kPeerToPeer;
}

// What transfer_stats() is made of; kHostToHost is not counted. No locks, no allocation.

using CountClock = std::chrono::steady_clock;

/// Where threads share them, a cache line for each direction: threads that load and threads that fetch results do not
/// slow each other down. One thread's own are not aligned so: on 64-bit ARM glibc does not load the Python module when
/// a variable of a thread in it wants such an alignment ("cannot allocate memory in static TLS block").
template <class Number>
struct alignas(std::integral<Number> ? alignof(Number) : 64) DirectionCounters {
  Number copies{0};
  Number bytes{0};
  Number submit_nanoseconds{0};
  Number waits{0};
  Number wait_nanoseconds{0};
};
template <class Number>
using Counters = std::array<DirectionCounters<Number>, static_cast<std::size_t>(Direction::kHostToHost)>;

/// `copies` copies were handed to the driver, which took since `begin`.
void count_copies(Direction direction, std::size_t copies, std::size_t bytes, CountClock::time_point begin) noexcept;

/// Counts its own lifetime as one wait of the host for copies.
class CountedWait {
 public:
  explicit CountedWait(Direction direction) noexcept : direction_(direction), begin_(CountClock::now()) {}
  ~CountedWait();
  CountedWait(const CountedWait&) = delete;
  CountedWait& operator=(const CountedWait&) = delete;

 private:
  Direction direction_;
  CountClock::time_point begin_;
};

/// Lets what helper threads count during a call count for the thread that calls, where scopes of it look.
class HelperCounts {
 public:
  HelperCounts() noexcept : caller_(std::this_thread::get_id()) {}
  /// In the thread that made it, when the helpers are done.
  ~HelperCounts();
  HelperCounts(const HelperCounts&) = delete;
  HelperCounts& operator=(const HelperCounts&) = delete;

  /// Does `work` in the calling thread, a helper or the caller itself.
  void run(const std::function<void()>& work);

 private:
  const std::thread::id caller_;
  std::mutex mutex_;
  Counters<std::uint64_t> sum_{};
};

}  // namespace penstock::device
