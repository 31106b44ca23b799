#pragma once

// What happens on a device, in order: the part of a backend that has state. Stream and Event of the public headers are
// handles on a Queue and a Mark.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "device/transfer_counts.h"
#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/stream.h"

namespace penstock::device {

struct CopyRange {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

/// One run of a kernel that the backend knows by name.
struct Launch {
  std::string_view kernel;
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::span<const void* const> arguments = {};  ///< the address of each; read before launch() returns
};

/// Matrices of one shape in a device's memory. Distances are in elements.
struct MatrixOperand {
  const std::byte* data = nullptr;  ///< aligned to its elements
  bool by_column = false;           ///< the elements of a column lie together; else those of a row
  std::int64_t stride = 0;          ///< from row to row, or column to column: no less than one is long
  std::int64_t batch_stride = 0;    ///< from matrix to matrix; 0: the same one each time
};

/// `batch` products of rows x depth and depth x columns, none of them 0.
struct MatrixProduct {
  DType::Code type = DType::Code::kFloat32;  ///< of the operands and the result
  std::int64_t rows = 1;
  std::int64_t depth = 1;
  std::int64_t columns = 1;
  std::int64_t batch = 1;
  MatrixOperand a;
  MatrixOperand b;
  std::byte* to = nullptr;           ///< rows one behind the other
  std::int64_t to_batch_stride = 0;  ///< from result to result, in elements
};

/// A point in a queue: reached when all work before it is done. Thread-safe.
class Mark {
 public:
  virtual ~Mark() = default;
  virtual bool done() const = 0;
  virtual void synchronize() const = 0;
};
using MarkPtr = std::shared_ptr<const Mark>;

/// An ordered queue of work on one device. All members may be called from any thread, whatever its current device; the
/// device's errors are kDeviceFailed, kOutOfMemory or kNoDevice with the driver's words.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Device device() const noexcept = 0;
  /// The handle that other libraries know it by; null for the default queue.
  virtual void* native() const noexcept = 0;
  /// Somebody else's: it may be gone when its work is done, so that marks are recorded at once.
  virtual bool is_foreign() const noexcept = 0;

  /// Starts copies, in no particular order among themselves; either end may be host memory or memory of any device, as
  /// `direction` says for all of them. Counted in transfer_stats().
  /// Pinned host memory must stay as it is until they are done; pageable memory is read before this returns, or written
  /// when it does.
  virtual void copy(std::span<const CopyRange> ranges, Direction direction) = 0;
  virtual void fill(std::byte* to, std::byte value, std::size_t bytes) = 0;
  /// kUnsupported for a kernel that the backend does not have.
  virtual void launch(const Launch& launch) = 0;
  /// Whether there is a library of the device's for products of this type, so that multiply() is worth asking.
  virtual bool multiplies(DType::Code /*type*/) { return false; }
  /// Starts a product by that library: sums of halves are made in float32, which is rounded once. False where there is
  /// none or it refuses this product; the result's memory may have been written to all the same.
  virtual bool multiply(const MatrixProduct& /*product*/) { return false; }
  /// Calls `action` in a thread of the backend's after all earlier work; it must not call the backend.
  virtual void on_complete(std::function<void()> action) = 0;
  virtual MarkPtr record() = 0;
  /// Later work starts after `mark`, of whatever queue.
  virtual void wait(const Mark& mark) = 0;
  virtual bool done() = 0;
  virtual void synchronize() = 0;
};
using QueuePtr = std::shared_ptr<Queue>;

}  // namespace penstock::device

namespace penstock {

/// What a Stream and an Event are made of.
class StreamAccess {
 public:
  static Stream make(device::QueuePtr queue) noexcept { return Stream(std::move(queue)); }
  static const device::QueuePtr& queue(const Stream& stream) noexcept { return stream.queue_; }
  static Event make(device::MarkPtr mark) noexcept { return Event(std::move(mark)); }
  static const device::MarkPtr& mark(const Event& event) noexcept { return event.mark_; }
};

}  // namespace penstock
