#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

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

}  // namespace penstock::device
