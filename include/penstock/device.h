#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

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
  Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT(google-explicit-constructor)
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

  /// "cpu", "cuda:1".
  std::string to_string() const;

  friend constexpr bool operator==(const Device&, const Device&) noexcept = default;
};

std::ostream& operator<<(std::ostream& out, const Device& device);

}  // namespace penstock
