#include "device/backend.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "core/text.h"
#include "device/cpu_backend.h"
#include "penstock/error.h"

namespace penstock::device {
namespace {

const Backend* find(DeviceType type) noexcept {
  for (const Backend* backend : backends()) {
    if (backend->type() == type) return backend;
  }
  return nullptr;
}

[[noreturn]] void throw_no_device(Device device, int visible) {
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool masked = device.type == DeviceType::kCuda && mask != nullptr;
  throw Error(ErrorCode::kNoDevice,
              fmt::format("{} requested, {} visible{}; use device \"cpu\" or one that is there", device.to_string(),
                          visible, masked ? ", CUDA_VISIBLE_DEVICES=" + core::quoted(mask) : ""));
}

}  // namespace

std::span<const Backend* const> backends() noexcept {
  static const std::array<const Backend*, 1> table = {&cpu_backend()};
  return table;
}

const Backend& backend_for(DeviceType type) {
  const Backend* backend = find(type);
  if (backend == nullptr) throw_no_device(Device(type, 0), 0);
  return *backend;
}

void require_device(Device device) {
  const Backend* backend = find(device.type);
  const int count = backend != nullptr ? backend->device_count() : 0;
  if (device.index < 0 || device.index >= count) throw_no_device(device, count);
}

}  // namespace penstock::device
