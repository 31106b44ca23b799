#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/device.h"

namespace penstock::device {

struct Properties {
  std::string name;
  std::uint64_t total_bytes = 0;
  int numa_node = -1;           ///< -1: unknown or spread
  bool unified_memory = false;  ///< the host may read and write it
  std::size_t alignment = 64;   ///< of every allocation
};

struct MemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// What memory is wanted for; a backend may choose pages and pools by it.
enum class Purpose : std::uint8_t { kTensor, kStaging };

struct CopyRange {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

/// An ordered queue of work on one device. Work of one queue runs in order; `ticket`s order it against the host. Not
/// thread-safe: one queue belongs to one thread at a time.
class Queue {
 public:
  using Ticket = std::uint64_t;

  virtual ~Queue() = default;
  /// Starts copies; either end may be host or device memory. Host memory must stay valid until the copy is done.
  virtual void copy(std::span<const CopyRange> ranges) = 0;
  virtual void fill(std::byte* to, std::byte value, std::size_t bytes) = 0;
  /// Marks this point; done when all earlier work is.
  virtual Ticket record() = 0;
  virtual bool done(Ticket ticket) = 0;
  virtual void wait(Ticket ticket) = 0;
  virtual void synchronise() = 0;
};

/// One kind of device. Stateless towards its callers; all members may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceType type() const noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  /// DLPack's device type for its memory.
  virtual int dlpack_type() const noexcept = 0;
  /// Devices this process can use now; 0 when there are none. No side effects.
  virtual int device_count() const noexcept = 0;
  /// The calling thread's current device.
  virtual int current_device() const noexcept = 0;
  virtual Properties properties(int index) const = 0;
  virtual MemoryInfo memory(int index) const = 0;
  /// Uninitialised memory, or kOutOfMemory with what was asked and what is free.
  virtual Buffer allocate(int index, std::size_t bytes, Purpose purpose) const = 0;
  virtual std::unique_ptr<Queue> make_queue(int index) const = 0;
};

/// The table of backends, CPU first.
std::span<const Backend* const> backends() noexcept;
/// The backend for `type`, or kNoDevice when this build has none.
const Backend& backend_for(DeviceType type);
/// Checks that `device` is there, or throws kNoDevice saying how many are visible.
void require_device(Device device);

}  // namespace penstock::device
