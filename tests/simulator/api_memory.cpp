// Device memory, pinned memory, and what an address is.

#include <sys/mman.h>

#include <cstring>

#include "simulator/call.h"
#include "simulator/memory.h"

namespace penstock::simulator {
namespace {

// Nothing promises that pinned memory begins on a page.
constexpr std::size_t kOffPage = 512;

bool overlaps_pinned(std::uintptr_t address, std::size_t bytes) {
  const auto& pinned = state().pinned;
  const auto next = pinned.lower_bound(address);
  return (next != pinned.end() && next->first < address + bytes) || find_pinned(address) != nullptr;
}

// The error that a failed context leaves, once the resource is gone: programs release what they have then, too.
CUresult left_over(const ContextPtr& context) { return failure_of(*context); }

CUresult pointer_value(int attribute, const Side& side, void* data) {
  const ContextPtr& context = side.on_device() ? side.memory->context : side.pinned->context;
  const std::uint64_t start = side.on_device() ? side.memory->address : side.pinned->address;
  const std::size_t bytes = side.on_device() ? side.memory->bytes : side.pinned->bytes;
  const auto put = [data](const auto& value) { std::memcpy(data, &value, sizeof value); };
  switch (attribute) {
    case kPointerContext:
      put(context->handle);
      return kSuccess;
    case kPointerMemoryType:
      put(side.on_device() ? kMemoryDevice : kMemoryHost);
      return kSuccess;
    case kPointerHost:
      if (side.on_device()) return kInvalidValue;
      [[fallthrough]];
    case kPointerDevice:
      put(side.address);
      return kSuccess;
    case kPointerManaged:
      put(false);
      return kSuccess;
    case kPointerOrdinal:
      put(context->device);
      return kSuccess;
    case kPointerRangeStart:
      put(start);
      return kSuccess;
    case kPointerRangeSize:
      put(bytes);
      return kSuccess;
    case kPointerPool:
      put(side.on_device() ? side.memory->pool : CUmemoryPool{});
      return kSuccess;
    default:
      return kNotSupported;
  }
}

}  // namespace

PENSTOCK_SIM_API CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const Call call("cuMemGetInfo_v2", Need::kContext);
  if (call.refused()) return call.result();
  if (free == nullptr || total == nullptr) return kInvalidValue;
  const Lock lock;
  const State& s = state();
  const std::uint64_t used = s.used.at(static_cast<std::size_t>(current_context()->device));
  *total = s.settings.memory;
  *free = s.settings.memory - std::min(used, s.settings.memory);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const Call call("cuMemAlloc_v2", Need::kContext);
  if (call.refused()) return call.result();
  if (address == nullptr) return kInvalidValue;
  const Lock lock;
  AllocationPtr allocation;
  const CUresult result = allocate(bytes, nullptr, allocation);
  if (result == kSuccess) *address = allocation->address;
  return result;
}

PENSTOCK_SIM_API CUresult cuMemFree_v2(CUdeviceptr address) {
  const Call call("cuMemFree_v2", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  if (address == 0) return kSuccess;
  if (current_context() == nullptr) return kInvalidContext;
  const AllocationPtr allocation = find(state().memory, address);
  if (allocation == nullptr || allocation->freed) {
    violation("cuMemFree_v2: no allocation begins at " + std::to_string(address));
    return kInvalidValue;
  }
  if (allocation->in_flight > 0 && failure_of(*allocation->context) == kSuccess) {
    violation("cuMemFree_v2: " + std::to_string(allocation->bytes) + " bytes that operations still use");
    return kInvalidValue;
  }
  release(allocation);
  return left_over(allocation->context);
}

PENSTOCK_SIM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const Call call("cuMemGetAddressRange_v2", Need::kContext);
  if (call.refused()) return call.result();
  const Lock lock;
  const AllocationPtr allocation = find_allocation(address);
  if (allocation == nullptr) return kNotFound;
  if (base != nullptr) *base = allocation->address;
  if (bytes != nullptr) *bytes = allocation->bytes;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
  const Call call("cuMemHostAlloc", Need::kContext);
  if (call.refused()) return call.result();
  if (address == nullptr || (flags & ~kHostFlags) != 0) return kInvalidValue;
  void* const page = ::mmap(nullptr, bytes + kOffPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return kOutOfMemory;
  *address = static_cast<std::byte*>(page) + kOffPage;
  const Lock lock;
  const auto at = reinterpret_cast<std::uintptr_t>(*address);
  state().pinned[at] = std::make_shared<Pinned>(Pinned{at, bytes, false, flags, current_context()});
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemFreeHost(void* address) {
  const Call call("cuMemFreeHost", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PinnedPtr pinned = find(state().pinned, reinterpret_cast<std::uintptr_t>(address));
  if (pinned == nullptr || pinned->registered) {
    violation("cuMemFreeHost: not what cuMemHostAlloc gave");
    return kInvalidValue;
  }
  if (pinned->in_flight > 0 && failure_of(*pinned->context) == kSuccess) {
    violation("cuMemFreeHost: " + std::to_string(pinned->bytes) + " bytes that operations still use");
    return kInvalidValue;
  }
  state().pinned.erase(pinned->address);
  if (pinned->in_flight == 0) ::munmap(static_cast<std::byte*>(address) - kOffPage, pinned->bytes + kOffPage);
  return left_over(pinned->context);
}

PENSTOCK_SIM_API CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
  const Call call("cuMemHostRegister_v2", Need::kContext);
  if (call.refused()) return call.result();
  if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) return kInvalidValue;
  const Lock lock;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (find_allocation(at) != nullptr) return kInvalidValue;
  if (overlaps_pinned(at, bytes)) return kHostRegistered;
  state().pinned[at] = std::make_shared<Pinned>(Pinned{at, bytes, true, flags, current_context()});
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemHostUnregister(void* address) {
  const Call call("cuMemHostUnregister", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PinnedPtr pinned = find(state().pinned, reinterpret_cast<std::uintptr_t>(address));
  if (pinned == nullptr || !pinned->registered) return kHostNotRegistered;
  if (pinned->in_flight > 0 && failure_of(*pinned->context) == kSuccess) {
    violation("cuMemHostUnregister: " + std::to_string(pinned->bytes) + " bytes that operations still use");
    return kInvalidValue;
  }
  state().pinned.erase(pinned->address);
  return left_over(pinned->context);
}

PENSTOCK_SIM_API CUresult cuMemHostGetFlags(unsigned* flags, void* address) {
  const Call call("cuMemHostGetFlags", Need::kContext);
  if (call.refused()) return call.result();
  const Lock lock;
  const PinnedPtr pinned = find_pinned(reinterpret_cast<std::uintptr_t>(address));
  if (flags == nullptr || pinned == nullptr) return kInvalidValue;
  *flags = pinned->flags;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* address, unsigned flags) {
  const Call call("cuMemHostGetDevicePointer_v2", Need::kContext);
  if (call.refused()) return call.result();
  const Lock lock;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (device == nullptr || flags != 0 || find_pinned(at) == nullptr) return kInvalidValue;
  *device = at;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address) {
  const Call call("cuPointerGetAttribute", Need::kContext);
  if (call.refused()) return call.result();
  if (data == nullptr) return kInvalidValue;
  const Lock lock;
  const Side side{address, 0, find_allocation(address), find_pinned(address)};
  return side.pageable() ? CUresult{kInvalidValue} : pointer_value(attribute, side, data);
}

PENSTOCK_SIM_API CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  const Call call("cuPointerGetAttributes", Need::kContext);
  if (call.refused()) return call.result();
  if (attributes == nullptr || data == nullptr) return kInvalidValue;
  const Lock lock;
  const Side side{address, 0, find_allocation(address), find_pinned(address)};
  // Of an address that the driver does not know it says nothing, and that is no error.
  for (unsigned i = 0; i < count; ++i) {
    if (side.pageable()) {
      std::memset(data[i], 0, attributes[i] == kPointerManaged ? 1 : 4);
    } else {
      pointer_value(attributes[i], side, data[i]);
    }
  }
  return kSuccess;
}

}  // namespace penstock::simulator
