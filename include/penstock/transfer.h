#pragma once

/// Counts copies between host and devices, and warns about tensors that go back and forth. Start at TransferScope to
/// see what a piece of a program copies.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"

namespace penstock {

/// Copies in one direction. Each call of the driver counts as one copy: neighbouring pieces that a load sends together
/// are one copy, and large pageable memory is several.
struct TransferCounts {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  /// Wall time that host threads spent in the driver's calls that start copies, added up over threads. For pageable
  /// memory this includes reading it. It is not the time that the device copied.
  double submit_seconds = 0;
  std::uint64_t waits = 0;  ///< times a host thread was blocked until copies were done
  double wait_seconds = 0;  ///< how long, added up over threads and not part of submit_seconds

  TransferCounts& operator+=(const TransferCounts& other) noexcept;
  /// What was counted since `before`, an earlier state of the same counters.
  TransferCounts operator-(const TransferCounts& before) const noexcept;
};

/// All copies by Penstock between host memory and devices, between devices, and on devices. Writes of kernels and
/// copies within host memory do not count.
struct TransferStats {
  TransferCounts host_to_device;
  TransferCounts device_to_host;
  TransferCounts device_to_device;  ///< both ends on one device
  TransferCounts peer_to_peer;      ///< from one device to another

  const TransferCounts total() const noexcept;
  TransferStats operator-(const TransferStats& before) const noexcept;
};

/// The copies of all threads since the process started. A copy counts when it is submitted, not when it is done.
/// Thread-safe.
TransferStats transfer_stats() noexcept;

/// Counts copies from its construction on. It costs two readings of counters; scopes may nest and overlap.
class TransferScope {
 public:
  enum class Threads : std::uint8_t {
    kAll,      ///< every thread of the process, background threads of loads and loaders included
    kCurrent,  ///< only copies and waits of the thread that made the scope; loads copy in threads of their own
  };

  explicit TransferScope(Threads threads = Threads::kAll) noexcept;
  /// The copies so far. With kCurrent, kInvalidArgument in any thread but the one that made the scope.
  const TransferStats stats() const;

 private:
  Threads threads_;
  std::thread::id thread_;
  TransferStats before_;
};

/// A tensor that goes back and forth: the data of one storage was copied from host to device and back, or the other
/// way, kRoundTrips times. Copies by Tensor::to, Tensor::copy_to and Value::to are followed; a tensor computed on
/// either side starts again at 0.
struct TransferWarning {
  static constexpr int kRoundTrips = 4;

  std::string name;  ///< its place in the nested value, "layer.weight"; empty when it was moved alone
  Shape shape;
  DType dtype;
  Device device;  ///< the end that is not the host
  int round_trips = kRoundTrips;
  std::string message;  ///< all of this in one sentence, and what to do
};

/// Called once for each storage, in the thread that copies, after the copy was submitted. Exceptions that it throws go
/// to that thread's caller. Several threads may call it at once.
using TransferWarningHandler = std::function<void(const TransferWarning&)>;

/// Replaces the handler of the process and returns the one before. An empty handler prints to stderr, which is the
/// default. Thread-safe.
TransferWarningHandler set_transfer_warning_handler(TransferWarningHandler handler);

}  // namespace penstock
