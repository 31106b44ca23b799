#pragma once

/// Queues of work on a device, and points in them to wait for. Programs that only load need neither: tensors are ready
/// to use on the current stream of the thread that asked for them.

#include <memory>
#include <utility>

#include "penstock/device.h"

namespace penstock {

namespace device {
class Mark;
class Queue;
}  // namespace device

/// A point in the work of a stream. A value handle; thread-safe. Default-constructed it is a point that has passed.
class Event {
 public:
  Event() noexcept = default;
  Event(const Event&) = default;
  Event(Event&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Event& operator=(const Event&) & = default;
  Event& operator=(Event&&) & noexcept = default;
  ~Event() = default;

  /// True when all work before it is done. Errors of that work are thrown here or at a later call on its device.
  bool done() const;
  /// Blocks until it is done.
  void synchronize() const;

 private:
  friend class Stream;
  friend class StreamAccess;
  explicit Event(std::shared_ptr<const device::Mark> mark) noexcept : mark_(std::move(mark)) {}

  std::shared_ptr<const device::Mark> mark_;
};

/// An ordered queue of work on a device. Work of one stream runs in the order of its submission; work of different
/// streams runs in any order, unless `wait` orders it. A value handle: copies are the same stream, which is destroyed
/// after the last copy is gone and its work is done. Thread-safe. On the CPU all work is done when it is submitted.
class Stream {
 public:
  /// The stream of the CPU.
  Stream();
  /// A new stream. Lower priorities run first; out-of-range values are clipped. kNoDevice.
  explicit Stream(Device device, int priority = 0);
  Stream(const Stream&) = default;
  Stream(Stream&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Stream& operator=(const Stream&) & = default;
  Stream& operator=(Stream&&) & noexcept = default;
  ~Stream() = default;
  /// The stream that the calling thread's work on `device` goes to: the default stream unless a guard changed it.
  static Stream current(Device device);
  /// The default stream of the device, which PyTorch and CuPy use too by default.
  static Stream default_of(Device device);
  /// A stream of another library: a CUstream or cudaStream_t of the device's primary context (0 and 1: the legacy
  /// default stream, 2: the calling thread's own). It must outlive the work submitted here; Penstock never destroys it.
  static Stream wrap(Device device, void* native);

  const Device device() const noexcept;
  /// The CUstream; null for the default stream and the CPU.
  void* native() const noexcept;

  /// A point after all work submitted so far.
  Event record() const;
  /// Work submitted from now on starts after `event`, which may be of any stream. The host does not wait.
  void wait(const Event& event) const;
  void wait(const Stream& other) const { wait(other.record()); }
  /// True when all work submitted so far is done.
  bool done() const;
  /// Blocks until all work submitted so far is done.
  void synchronize() const;

  friend bool operator==(const Stream& a, const Stream& b) noexcept;

 private:
  friend class StreamAccess;
  friend class StreamGuard;
  explicit Stream(std::shared_ptr<device::Queue> queue) noexcept : queue_(std::move(queue)) {}

  std::shared_ptr<device::Queue> queue_;
};

/// While a guard lives, `stream` is the calling thread's current stream of its device, and that device is the current
/// one. Guards may nest; each ends in the thread that it began in.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Device of_;
  std::shared_ptr<device::Queue> before_;  ///< null: the default one
};

}  // namespace penstock
