#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock {

/// Copies of one direction. A copy is what was handed to the driver: neighbouring pieces that a load copies together
/// are one, large pageable memory goes in several.
struct TransferCounts {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  /// Wall time of host threads inside the driver's calls that start copies, which for pageable memory includes reading
  /// it; several threads add up. Not how long the device copied.
  double submit_seconds = 0;
  std::uint64_t waits = 0;  ///< times a host thread was blocked until copies were done
  double wait_seconds = 0;  ///< how long, on top of submit_seconds; several threads add up

  TransferCounts& operator+=(const TransferCounts& other) noexcept;
  /// What was counted since `before`, an earlier state of the same counters.
  TransferCounts operator-(const TransferCounts& before) const noexcept;
};

/// Copies between host memory and devices, and between and on devices, by everything in Penstock that copies. What
/// kernels write and what the host copies within its own memory are no transfers.
struct TransferStats {
  TransferCounts host_to_device;
  TransferCounts device_to_host;
  TransferCounts device_to_device;  ///< both ends on one device
  TransferCounts peer_to_peer;      ///< from one device to another

  TransferCounts total() const noexcept;
  TransferStats operator-(const TransferStats& before) const noexcept;
};

/// Of this process since its start, all threads. Counted when a copy is submitted, not when it is done. Thread-safe.
TransferStats transfer_stats() noexcept;

/// Counts what is transferred while it lives. Costs nothing but two readings; scopes nest and overlap freely.
class TransferScope {
 public:
  enum class Threads : std::uint8_t {
    kAll,      ///< every thread of the process, those that load and feed in the background included
    kCurrent,  ///< only what the thread that made the scope asks for and waits for; loads copy from threads of theirs
  };

  explicit TransferScope(Threads threads = Threads::kAll) noexcept;
  /// So far. Of kCurrent: kInvalidArgument in another thread than the scope's.
  TransferStats stats() const;

 private:
  Threads threads_;
  std::thread::id thread_;
  TransferStats before_;
};

/// A tensor that goes to and fro: the data of one storage was copied from host to device and back, or the other way,
/// kRoundTrips times. Copies by Tensor::to, Tensor::copy_to and Value::to are followed; whoever computes a new tensor
/// on either side starts anew.
struct TransferWarning {
  static constexpr int kRoundTrips = 4;

  std::string name;  ///< where in the nested value it lies, "layer.weight"; empty when moved by itself
  Shape shape;
  DType dtype;
  Device device;  ///< the end that is not the host
  int round_trips = kRoundTrips;
  std::string message;  ///< one sentence of all that, and what to do
};

/// Called in the thread that copies, after the copy was submitted and once for each storage; what it throws goes to
/// whoever copied. May be called by several threads at once.
using TransferWarningHandler = std::function<void(const TransferWarning&)>;

/// Replaces the process's handler and returns the one before. An empty one prints to stderr, as at the start.
/// Thread-safe.
TransferWarningHandler set_transfer_warning_handler(TransferWarningHandler handler);

}  // namespace penstock
