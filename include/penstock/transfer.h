#pragma once

#include <cstddef>
#include <cstdint>
#include <thread>

namespace penstock {

/// Copies of one direction. A copy is what was handed to the driver: neighbouring pieces that a load copies together
/// are one.
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
    kCurrent,  ///< only what the thread that made the scope submits and waits for itself
  };

  explicit TransferScope(Threads threads = Threads::kAll) noexcept;
  /// So far. Of kCurrent: kInvalidArgument in another thread than the scope's.
  TransferStats stats() const;

 private:
  Threads threads_;
  std::thread::id thread_;
  TransferStats before_;
};

}  // namespace penstock
