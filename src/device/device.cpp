#include "penstock/device.h"

#include <array>
#include <ostream>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "device/backend.h"
#include "penstock/error.h"

namespace penstock {
namespace {

struct Row {
  DeviceType type;
  std::string_view name;
};

constexpr std::array kTypes = std::to_array<Row>({{DeviceType::kCpu, "cpu"}, {DeviceType::kCuda, "cuda"}});

[[noreturn]] void throw_malformed(std::string_view text) {
  throw Error(
      ErrorCode::kInvalidArgument,
      core::format("device {} is not one of \"cpu\", \"cuda\" or \"cuda:N\" with N from 0", core::quoted(text)));
}

int parse_index(std::string_view digits, std::string_view text) {
  const auto index = core::parse_number<int>(digits);
  if (!index || *index < 0) throw_malformed(text);
  return *index;
}

int current_index(DeviceType type) noexcept {
  for (const device::Backend* backend : device::backends()) {
    if (backend->type() == type) return backend->current_device();
  }
  return 0;
}

const device::Backend& there(Device device) {
  device::require_device(device);
  return device::backend_for(device.type);
}

}  // namespace

Device::Device(const char* text) : Device(text ? std::string_view(text) : std::string_view()) {}

Device::Device(std::string_view text) {
  const std::size_t colon = text.find(':');
  for (const Row& row : kTypes) {
    if (row.name != text.substr(0, colon)) continue;
    type = row.type;
    index = colon == std::string_view::npos ? current_index(type) : parse_index(text.substr(colon + 1), text);
    if (type == DeviceType::kCpu && index != 0) throw_malformed(text);
    return;
  }
  throw_malformed(text);
}

std::string Device::to_string() const {
  const std::string_view name = kTypes[static_cast<std::size_t>(type)].name;
  return type == DeviceType::kCpu ? std::string(name) : core::format("{}:{}", name, index);
}

bool is_available(DeviceType type) noexcept { return device_count(type) > 0; }

int device_count(DeviceType type) noexcept {
  for (const device::Backend* backend : device::backends()) {
    if (backend->type() == type) return backend->device_count();
  }
  return 0;
}

DeviceProperties device_properties(Device device) { return there(device).properties(device.index); }

Device current_device(DeviceType type) noexcept { return {type, current_index(type)}; }

void set_current_device(Device device) { there(device).set_current_device(device.index); }

DeviceGuard::DeviceGuard(Device device) : before_(current_device(device.type)) { set_current_device(device); }

DeviceGuard::~DeviceGuard() { device::backend_for(before_.type).set_current_device(before_.index); }

MemoryStats memory_stats(Device device) { return there(device).stats(device.index); }

void set_memory_cap(Device device, std::optional<Integer> bytes) {
  if (bytes && *bytes < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("a cap of {} bytes, expected 0 or more", std::int64_t{*bytes}));
  }
  const auto cap = bytes ? std::optional(static_cast<std::uint64_t>(std::int64_t{*bytes})) : std::nullopt;
  there(device).set_memory_cap(device.index, cap);
}

void empty_cache(Device device) { there(device).empty_cache(device.index); }

void synchronize(Device device) { there(device).synchronize(device.index); }

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.to_string(); }

}  // namespace penstock
