#pragma once

/// Devices: the host ("cpu") and GPUs ("cuda:0"). `is_available` and `device_count` say what there is. Functions that
/// take a Device take its name too.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/integer.h"
#include "penstock/standard.h"

namespace penstock {

enum class DeviceType : std::uint8_t { kCpu, kCuda };

/// Where memory lies: a type and an index. A plain value; comparing and copying are free.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  constexpr Device() noexcept = default;
  constexpr Device(DeviceType device_type, int device_index) noexcept : type(device_type), index(device_index) {}
  /// Parses "cpu", "cuda" (the calling thread's current device) or "cuda:1"; kInvalidArgument otherwise. That the
  /// device is there is checked when memory is asked of it (kNoDevice).
  Device(std::string_view text);  // NOLINT(google-explicit-constructor): options are written `.device = "cuda:1"`
  Device(const char* text);       // NOLINT(google-explicit-constructor)
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

  /// The literal 0 is a null pointer too, and names no device: `.device = "cuda:0"`.
  Device(std::nullptr_t) = delete;

  constexpr Device(const Device&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  constexpr Device& operator=(const Device&) & noexcept = default;

  /// "cpu", "cuda:1".
  std::string to_string() const;

  friend constexpr bool operator==(const Device&, const Device&) noexcept = default;
};

std::ostream& operator<<(std::ostream& out, const Device& device);

struct DeviceProperties {
  std::string name;
  std::uint64_t total_bytes = 0;
  int numa_node = -1;           ///< -1: unknown or spread
  bool unified_memory = false;  ///< it has the host's memory and none of its own
  std::size_t alignment = 64;   ///< of every allocation
  int driver_version = 0;       ///< 12080 for 12.8; 0: none needed
  int major = 0;                ///< compute capability, major and minor
  int minor = 0;
  int multiprocessors = 0;
};

/// How much of a device's memory Penstock holds. It took from the driver what is in use and what is cached.
struct MemoryStats {
  std::uint64_t in_use_bytes = 0;    ///< in buffers that are alive, or whose last use is not done
  std::uint64_t peak_bytes = 0;      ///< the most that was ever in use
  std::uint64_t reserved_bytes = 0;  ///< in use and cached
  std::uint64_t allocations = 0;     ///< buffers given out since the start
  std::uint64_t free_bytes = 0;      ///< of the whole device, all programs counted
  std::uint64_t total_bytes = 0;
  std::optional<std::uint64_t> cap_bytes;  ///< what set_memory_cap allows
};

// Counting devices initialises none of them and never throws: a machine without a driver has no devices.
bool is_available(DeviceType type = DeviceType::kCuda) noexcept;
int device_count(DeviceType type = DeviceType::kCuda) noexcept;
/// kNoDevice when there is no such device.
DeviceProperties device_properties(Device device);

/// The calling thread's current device of this type, which "cuda" means; each thread starts at index 0.
Device current_device(DeviceType type = DeviceType::kCuda) noexcept;
/// kNoDevice when there is no such device.
void set_current_device(Device device);

/// While a guard lives, `device` is the thread's current one.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
};

MemoryStats memory_stats(Device device);
/// Sets the most bytes of `device` that Penstock holds at once; allocations beyond it are kOutOfMemory. Nothing: no
/// cap. kInvalidArgument below 0.
void set_memory_cap(Device device, std::optional<Integer> bytes);
/// Returns cached memory, page-locked host memory too, to the driver; buffers in use stay. It first waits for all work
/// that was submitted to the device.
void empty_cache(Device device);
/// Blocks until all work that was submitted to the device is done, of every stream.
void synchronize(Device device);

}  // namespace penstock

template <>
struct std::hash<penstock::Device> {
  std::size_t operator()(const penstock::Device& device) const noexcept {
    return std::hash<int>()(device.index * 256 + static_cast<int>(device.type));
  }
};
