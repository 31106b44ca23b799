// The table of devices, and the questions that are asked of all of them.

#include <array>
#include <string>

#include "core/environment.h"
#include "core/format.h"
#include "core/text.h"
#include "device/backend.h"
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
  const char* mask = core::environment("CUDA_VISIBLE_DEVICES");
  const bool masked = device.type == DeviceType::kCuda && mask != nullptr;
  const Backend* const backend = find(device.type);
  std::string reason = backend != nullptr && visible == 0 ? backend->why_none() : "";
  if (!reason.empty()) reason = " (" + reason + ")";
  throw Error(ErrorCode::kNoDevice,
              core::format("{} requested, {} visible{}{}; use device \"cpu\" or one that is there", device.to_string(),
                           visible, masked ? ", CUDA_VISIBLE_DEVICES=" + core::quoted(mask) : "", reason));
}

}  // namespace

std::span<const Backend* const> backends() noexcept {
  static const std::array<const Backend*, 2> kBackends = {&cpu_backend(), &cuda_backend()};
  return kBackends;
}

const Backend& backend_for(DeviceType type) {
  const Backend* backend = find(type);
  if (backend == nullptr) throw_no_device(Device(type, 0), 0);
  return *backend;
}

const Backend* pinning_backend() noexcept {
  for (const Backend* backend : backends()) {
    if (backend->type() != DeviceType::kCpu && backend->device_count() > 0) return backend;
  }
  return nullptr;
}

const Backend& require_pinning_backend() {
  const Backend* const backend = pinning_backend();
  if (backend == nullptr) require_device(Device(DeviceType::kCuda, 0));
  return *backend;
}

void require_device(Device device) {
  const Backend* backend = find(device.type);
  const int count = backend != nullptr ? backend->device_count() : 0;
  if (device.index < 0 || device.index >= count) throw_no_device(device, count);
}

}  // namespace penstock::device
