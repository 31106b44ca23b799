#pragma once

#include "simulator/state.h"

namespace penstock::simulator {

/// New device memory in the current context: kOutOfMemory above the device's size, kInvalidValue for none. Needs the
/// lock.
CUresult allocate(std::size_t bytes, CUmemoryPool pool, AllocationPtr& allocation);
/// Takes it out of the device's account; its address stays without access. Needs the lock.
void release(const AllocationPtr& allocation);
/// The device memory that holds `address`, or null. Needs the lock.
AllocationPtr find_allocation(CUdeviceptr address);
/// The pinned memory that holds `address`, or null. Needs the lock.
PinnedPtr find_pinned(std::uintptr_t address);

/// One side of a copy: device memory, pinned memory, or host memory that the driver does not know.
struct Side {
  std::uint64_t address;
  std::size_t bytes;
  AllocationPtr memory;
  PinnedPtr pinned;
  bool on_device() const noexcept { return memory != nullptr; }
  bool pageable() const noexcept { return memory == nullptr && pinned == nullptr; }
  std::uint64_t offset() const noexcept { return address - memory->address; }
  /// Where the bytes are for the simulator.
  std::byte* data() const noexcept {
    return on_device() ? memory->alias + offset() : reinterpret_cast<std::byte*>(address);
  }
};

/// Finds out what is at `address`; kInvalidValue, and a violation, when the bytes run past its end. Takes the lock.
CUresult resolve(const char* call, std::uint64_t address, std::size_t bytes, Side& side);

}  // namespace penstock::simulator
