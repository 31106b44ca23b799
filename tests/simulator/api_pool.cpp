// Stream-ordered memory: what drivers before 11.2 do not have, and libpenstock_simulated_old_cuda.so neither.

#include <algorithm>
#include <cstring>

#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/memory.h"

namespace penstock::simulator {
namespace {

CUmemoryPool default_pool(int device) {
  CUmemoryPool& handle = state().default_pools.at(static_cast<std::size_t>(device));
  if (handle == nullptr) {
    handle = new_handle<CUmemoryPool>();
    state().pools.emplace(handle, std::make_shared<Pool>(Pool{.device = device, .is_default = true}));
  }
  return handle;
}

CUmemoryPool current_pool(int device) {
  const CUmemoryPool chosen = state().current_pools.at(static_cast<std::size_t>(device));
  return chosen != nullptr ? chosen : default_pool(device);
}

void give_to_device(Pool& pool, std::uint64_t bytes) {
  pool.kept -= bytes;
  state().used.at(static_cast<std::size_t>(pool.device)) -= bytes;
}

OperationPtr make_operation(const char* name, const AllocationPtr& allocation) {
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  operation->memory.push_back(allocation);
  return operation;
}

CUresult allocate_in_order(const char* name, CUdeviceptr* address, std::size_t bytes, CUmemoryPool handle,
                           const StreamPtr& stream) {
  AllocationPtr allocation;
  {
    const Lock lock;
    const PoolPtr pool = find(state().pools, handle);
    if (pool == nullptr || address == nullptr) return kInvalidValue;
    give_to_device(*pool, std::min<std::uint64_t>(pool->kept, bytes));
    if (const CUresult result = allocate(bytes, handle, allocation); result != kSuccess) return result;
    pool->used += bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
    pool->reserved_high = std::max(pool->reserved_high, pool->used + pool->kept);
    *address = allocation->address;
  }
  const OperationPtr operation = make_operation(name, allocation);
  operation->run = [] { return CUresult{kSuccess}; };
  submit(stream, operation);
  return kSuccess;
}

// What a pool has beyond its threshold goes back to the device, as a driver does at the next synchronisation.
void keep(Pool& pool, std::uint64_t bytes) {
  pool.used -= bytes;
  const std::uint64_t room = pool.threshold - std::min(pool.threshold, pool.used + pool.kept);
  const std::uint64_t kept = std::min(bytes, room);
  pool.kept += kept;
  state().used.at(static_cast<std::size_t>(pool.device)) += kept;
}

// Work that was submitted elsewhere and has not come to its end is not waited for by a free in this stream.
bool others_use(const AllocationPtr& allocation, const StreamPtr& stream) {
  unsigned own = 0;
  for (const OperationPtr& operation : stream->queue) {
    for (const AllocationPtr& memory : operation->memory) own += memory == allocation ? 1 : 0;
  }
  return allocation->in_flight > own;
}

// The streams' own order leads from the other stream's work to the free where this one was made to wait for it.
bool waits_for_others(const StreamPtr& stream) {
  for (const OperationPtr& operation : stream->queue) {
    if (!operation->after.empty()) return true;
  }
  return false;
}

CUresult pool_value(int attribute, const Pool& pool, std::uint64_t& value) {
  switch (attribute) {
    case kPoolReleaseThreshold:
      value = pool.threshold;
      return kSuccess;
    case kPoolReserved:
      value = pool.used + pool.kept;
      return kSuccess;
    case kPoolUsed:
      value = pool.used;
      return kSuccess;
    case kPoolReservedHigh:
      value = pool.reserved_high;
      return kSuccess;
    case kPoolUsedHigh:
      value = pool.used_high;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

}  // namespace

PENSTOCK_SIM_API CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream handle) {
  const Call call("cuMemAllocAsync", Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  CUmemoryPool pool = nullptr;
  {
    const Lock lock;
    pool = current_pool(stream->context->device);
  }
  return allocate_in_order("cuMemAllocAsync", address, bytes, pool, stream);
}

PENSTOCK_SIM_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                                  CUstream handle) {
  const Call call("cuMemAllocFromPoolAsync", Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  return allocate_in_order("cuMemAllocFromPoolAsync", address, bytes, pool, stream);
}

PENSTOCK_SIM_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  const Call call("cuMemFreeAsync", Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  AllocationPtr allocation;
  {
    const Lock lock;
    allocation = find(state().memory, address);
    if (allocation == nullptr || allocation->freed) {
      violation("cuMemFreeAsync: no allocation begins at " + std::to_string(address));
      return kInvalidValue;
    }
    if (others_use(allocation, stream) && !waits_for_others(stream)) {
      violation("cuMemFreeAsync: another stream still uses the memory, and this one does not wait for it");
      return kInvalidValue;
    }
    allocation->freed = true;
  }
  auto operation = std::make_shared<Operation>();
  operation->name = "cuMemFreeAsync";
  operation->run = [allocation]() -> CUresult {
    const Lock lock;
    release(allocation);
    if (const PoolPtr pool = find(state().pools, allocation->pool)) keep(*pool, allocation->bytes);
    return kSuccess;
  };
  submit(stream, operation);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  const Call call("cuMemPoolCreate", Need::kStart);
  if (call.refused()) return call.result();
  if (handle == nullptr || properties == nullptr || properties->allocation_type != 1) return kInvalidValue;
  const Lock lock;
  if (properties->location.type != 1 || !is_device(properties->location.id)) return kInvalidValue;
  *handle = new_handle<CUmemoryPool>();
  state().pools.emplace(*handle, std::make_shared<Pool>(Pool{.device = properties->location.id}));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  const Call call("cuMemPoolDestroy", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PoolPtr pool = find(state().pools, handle);
  if (pool == nullptr || pool->is_default) return kInvalidValue;
  give_to_device(*pool, pool->kept);
  state().pools.erase(handle);
  for (CUmemoryPool& current : state().current_pools) current = current == handle ? nullptr : current;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void* value) {
  const Call call("cuMemPoolSetAttribute", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PoolPtr pool = find(state().pools, handle);
  if (pool == nullptr || value == nullptr || attribute < 1 || attribute > kPoolUsedHigh) return kInvalidValue;
  if (attribute == kPoolReleaseThreshold) std::memcpy(&pool->threshold, value, sizeof pool->threshold);
  if (attribute == kPoolReservedHigh) pool->reserved_high = pool->used + pool->kept;
  if (attribute == kPoolUsedHigh) pool->used_high = pool->used;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void* value) {
  const Call call("cuMemPoolGetAttribute", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PoolPtr pool = find(state().pools, handle);
  if (pool == nullptr || value == nullptr) return kInvalidValue;
  std::uint64_t found = 0;
  const CUresult result = pool_value(attribute, *pool, found);
  if (result == kSuccess) std::memcpy(value, &found, sizeof found);
  return result;
}

PENSTOCK_SIM_API CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t bytes_to_keep) {
  const Call call("cuMemPoolTrimTo", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  const PoolPtr pool = find(state().pools, handle);
  if (pool == nullptr) return kInvalidValue;
  const std::uint64_t surplus =
      pool->used + pool->kept - std::min(pool->used + pool->kept, std::uint64_t{bytes_to_keep});
  give_to_device(*pool, std::min(surplus, pool->kept));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  const Call call("cuDeviceGetDefaultMemPool", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  if (pool == nullptr) return kInvalidValue;
  if (!is_device(device)) return kInvalidDevice;
  *pool = default_pool(device);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  const Call call("cuDeviceGetMemPool", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  if (pool == nullptr) return kInvalidValue;
  if (!is_device(device)) return kInvalidDevice;
  *pool = current_pool(device);
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  const Call call("cuDeviceSetMemPool", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  if (find(state().pools, pool) == nullptr) return kInvalidValue;
  state().current_pools.at(static_cast<std::size_t>(device)) = pool;
  return kSuccess;
}

}  // namespace penstock::simulator
