#pragma once

// What a kind of device can do, as a table of backends: cpu_backend.cpp, and CUDA in cuda/. Everything above asks a
// Backend and names no driver.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/queue.h"
#include "penstock/buffer.h"
#include "penstock/device.h"

namespace penstock::device {

struct MemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// What memory is wanted for; a backend may choose pages and pools by it.
enum class Purpose : std::uint8_t { kTensor, kStaging };

/// What multiplies matrices on a device besides our own kernel.
struct ProductLibrary {
  std::string name;      ///< with version and path; empty where there is none
  std::string why_none;  ///< and what to do, as the rest of a sentence
};

/// One kind of device. Stateless towards its callers; all members may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceType type() const noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  /// DLPack's device type for its memory.
  virtual int dlpack_type() const noexcept = 0;
  /// Devices this process can use now; 0 when there are none. Makes no context.
  virtual int device_count() const noexcept = 0;
  /// Why device_count() is 0, as the rest of a sentence; empty otherwise.
  virtual std::string why_none() const = 0;
  virtual int current_device() const noexcept = 0;
  virtual void set_current_device(int index) const noexcept = 0;
  virtual DeviceProperties properties(int index) const = 0;
  virtual MemoryInfo memory(int index) const = 0;
  virtual MemoryStats stats(int index) const = 0;
  virtual void set_memory_cap(int index, std::optional<std::uint64_t> bytes) const = 0;
  virtual void empty_cache(int index) const = 0;
  virtual void synchronize(int index) const = 0;

  /// Uninitialised memory, or kOutOfMemory with what was asked and what is free. Device memory is ready for work on the
  /// calling thread's current queue, and for that of others after it; its last use may be on any queue that was
  /// recorded in its QueueUses.
  virtual Buffer allocate(int index, std::size_t bytes, Purpose purpose) const = 0;
  /// Of somebody else's; `owner` goes when recorded uses are over.
  virtual Buffer wrap(int index, void* data, std::size_t bytes, std::shared_ptr<const void> owner,
                      bool read_only) const = 0;
  /// Page-locked host memory, recycled; kUnsupported for a backend whose memory is the host's.
  virtual Buffer allocate_pinned(std::size_t bytes) const = 0;
  /// Whether `address` is page-locked, whoever did it. Never begins to use a device.
  virtual bool is_pinned(const void* address) const noexcept = 0;
  /// The index of the device whose memory `address` is, whoever took it; nothing where that is not known. Never begins
  /// to use a device.
  virtual std::optional<int> device_of(const void* address) const noexcept = 0;
  /// Page-locks memory that exists, until the handle is destroyed.
  virtual std::shared_ptr<const void> register_host(void* data, std::size_t bytes) const = 0;

  /// Calls `action` where libraries of the device's maker find its context: it is the calling thread's current one for
  /// that long. kDeviceFailed, and no call, in a process that was forked after devices were used.
  virtual void in_context(int index, const std::function<void()>& action) const = 0;

  virtual QueuePtr default_queue(int index) const = 0;
  virtual QueuePtr make_queue(int index, int priority) const = 0;
  virtual QueuePtr import_queue(int index, void* native) const = 0;
  /// Whether its queues can launch `kernel`; loads it for `index` when they can.
  virtual bool has_kernel(int index, std::string_view kernel) const = 0;
  /// What its queues' multiply() asks on `index`; begins to use it.
  virtual ProductLibrary product_library(int /*index*/) const { return {}; }
};

/// The table of backends, CPU first.
std::span<const Backend* const> backends() noexcept;
/// The backend for `type`, or kNoDevice when this build has none.
const Backend& backend_for(DeviceType type);
/// The backend whose devices read page-locked memory: the first besides the CPU that has a device, or null.
const Backend* pinning_backend() noexcept;
/// The same, or kNoDevice.
const Backend& require_pinning_backend();
/// The queue that the calling thread's work on `device` goes to.
QueuePtr current_queue(Device device);
/// Checks that `device` is there, or throws kNoDevice saying how many are visible.
void require_device(Device device);

// The rows of the table (device/backends.cpp).

/// Host memory; its queues run everything at once.
const Backend& cpu_backend() noexcept;
/// NVIDIA's devices, through the driver's library, which is opened at run time.
const Backend& cuda_backend() noexcept;

}  // namespace penstock::device
