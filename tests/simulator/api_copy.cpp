// Copies and fills.

#include <cstring>
#include <thread>

#include "simulator/call.h"
#include "simulator/engine.h"
#include "simulator/memory.h"

namespace penstock::simulator {
namespace {

std::uint64_t hash_of(const std::byte* data, std::size_t bytes) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ bytes;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; ++data, --bytes) hash = (hash ^ static_cast<std::uint64_t>(*data)) * 0x100000001B3U;
  return hash;
}

void take_time(std::size_t bytes) {
  std::uint64_t speed = 0;
  {
    const Lock lock;
    speed = state().settings.speed;
  }
  if (speed > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(speed)));
}

bool is_left_out(const Side& to, const Side& from) {
  const Lock lock;
  return !state().settings.copies && to.on_device() && from.pinned != nullptr;
}

bool works_late() {
  const Lock lock;
  return state().settings.mode != kPenstockSimEager;
}

void count(const Side& to, const Side& from) {
  const Lock lock;
  PenstockSimStatistics& counts = state().counts;
  counts.copied_bytes += to.bytes;
  counts.pageable_copies += to.pageable() || from.pageable() ? 1 : 0;
  if (to.on_device()) {
    ++(from.on_device() ? counts.copies_on_device : counts.copies_to_device);
  } else if (from.on_device()) {
    ++counts.copies_to_host;
  }
}

// What the written map says of a copy, which follows the bytes.
CUresult note_written(const Side& to, const Side& from) {
  const Lock lock;
  if (to.on_device() && from.on_device()) {
    to.memory->written.copy(from.memory->written, from.offset(), to.offset(), to.bytes);
  } else if (to.on_device()) {
    to.memory->written.add(to.offset(), to.offset() + to.bytes);
  } else if (from.on_device() && !from.memory->written.covers(from.offset(), from.offset() + from.bytes)) {
    violation("a copy to the host of device memory that nothing wrote");
    return kLaunchFailed;
  }
  return kSuccess;
}

/// A copy as it is executed: from the bytes as they are then, or from `staged`.
struct Copy {
  Side to;
  Side from;
  std::shared_ptr<const std::vector<std::byte>> staged;
  std::uint64_t hash = 0;
  bool checked = false;

  CUresult operator()() const {
    take_time(to.bytes);
    if (const CUresult lost = failure(); lost != kSuccess) return lost;
    if (checked && hash_of(from.data(), from.bytes) != hash) {
      const Lock lock;
      violation("a pinned source was changed between the call that copies it and the copy");
    }
    if (!is_left_out(to, from)) {
      std::memmove(to.data(), staged != nullptr ? staged->data() : from.data(), to.bytes);
    }
    return note_written(to, from);
  }

  /// Of a device that was lost while it copied: it reads nothing more.
  CUresult failure() const {
    const Lock lock;
    for (const Side* side : {&to, &from}) {
      if (!side->on_device()) continue;
      if (const CUresult failed = failure_of(*side->memory->context); failed != kSuccess) return failed;
    }
    return kSuccess;
  }
};

void use(Operation& operation, const Side& side) {
  if (side.memory != nullptr) operation.memory.push_back(side.memory);
  if (side.pinned != nullptr) operation.pinned.push_back(side.pinned);
}

CUresult copy(const char* name, const Side& to, const Side& from, const StreamPtr& stream) {
  if (to.bytes == 0) return kSuccess;
  count(to, from);
  Copy run{to, from, nullptr};
  // The driver stages pageable memory before it returns, and reads pinned memory when the copy's turn comes.
  if (from.pageable())
    run.staged = std::make_shared<const std::vector<std::byte>>(from.data(), from.data() + from.bytes);
  if (from.pinned != nullptr && works_late()) {
    run.checked = true;
    run.hash = hash_of(from.data(), from.bytes);
  }
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  use(*operation, to);
  use(*operation, from);
  operation->run = std::move(run);
  const Place place = submit(stream, operation);
  if (to.pageable()) return wait_for(place);
  return kSuccess;
}

enum class Where { kAnywhere, kDevice, kHost };

bool fits(Where where, const Side& side) {
  return where == Where::kAnywhere || (where == Where::kDevice) == side.on_device();
}

/// Memory of a pool is accessible from its own device; what another device's context copies does not reach it.
bool reaches(const Side& side) {
  return !side.on_device() || side.memory->pool == nullptr || side.memory->context == current_context();
}

CUresult copy(const char* name, CUdeviceptr to, Where to_where, CUdeviceptr from, Where from_where, std::size_t bytes,
              CUstream handle, bool waits, bool between_devices = false) {
  const Call call(name, Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  Side target{};
  Side source{};
  if (const CUresult result = resolve(name, to, bytes, target); result != kSuccess) return result;
  if (const CUresult result = resolve(name, from, bytes, source); result != kSuccess) return result;
  if (bytes > 0 && (!fits(to_where, target) || !fits(from_where, source))) return kInvalidValue;
  if (!between_devices && (!reaches(target) || !reaches(source))) return kInvalidValue;
  const CUresult result = copy(name, target, source, stream);
  if (result != kSuccess || !waits) return result;
  std::uint64_t last = 0;
  {
    const Lock lock;
    last = stream->submitted;
  }
  return wait_for({stream, last});
}

/// Whether it is memory of that context.
bool belongs(CUdeviceptr address, CUcontext context) {
  const Lock lock;
  const AllocationPtr memory = find_allocation(address);
  return memory != nullptr && memory->context->handle == context;
}

CUdeviceptr host(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

CUresult fill(const char* name, CUdeviceptr to, unsigned value, unsigned width, std::size_t count, CUstream handle) {
  const Call call(name, Need::kContext);
  if (call.refused()) return call.result();
  StreamPtr stream;
  if (const CUresult result = stream_here(handle, stream); result != kSuccess) return result;
  Side side{};
  if (const CUresult result = resolve(name, to, count * width, side); result != kSuccess) return result;
  if (count == 0) return kSuccess;
  if (!side.on_device() || to % width != 0) return kInvalidValue;
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  use(*operation, side);
  operation->run = [side, value, width, count]() -> CUresult {
    for (std::size_t i = 0; width > 1 && i < count; ++i) std::memcpy(side.data() + i * width, &value, width);
    if (width == 1) std::memset(side.data(), static_cast<int>(value), count);
    const Lock lock;
    side.memory->written.add(side.offset(), side.offset() + side.bytes);
    return kSuccess;
  };
  submit(stream, operation);
  return kSuccess;
}

}  // namespace

PENSTOCK_SIM_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyAsync", to, Where::kAnywhere, from, Where::kAnywhere, bytes, stream, false);
}

PENSTOCK_SIM_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyHtoDAsync_v2", to, Where::kDevice, host(from), Where::kHost, bytes, stream, false);
}

PENSTOCK_SIM_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoHAsync_v2", host(to), Where::kHost, from, Where::kDevice, bytes, stream, false);
}

PENSTOCK_SIM_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy("cuMemcpyDtoDAsync_v2", to, Where::kDevice, from, Where::kDevice, bytes, stream, false);
}

PENSTOCK_SIM_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy("cuMemcpyHtoD_v2", to, Where::kDevice, host(from), Where::kHost, bytes, nullptr, true);
}

PENSTOCK_SIM_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy("cuMemcpyDtoH_v2", host(to), Where::kHost, from, Where::kDevice, bytes, nullptr, true);
}

PENSTOCK_SIM_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                            CUcontext from_context, std::size_t bytes, CUstream stream) {
  if (!belongs(to, to_context) || !belongs(from, from_context)) return kInvalidContext;
  return copy("cuMemcpyPeerAsync", to, Where::kDevice, from, Where::kDevice, bytes, stream, false, true);
}

PENSTOCK_SIM_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", to, value, 1, count, stream);
}

PENSTOCK_SIM_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", to, value, 2, count, stream);
}

PENSTOCK_SIM_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", to, value, 4, count, stream);
}

}  // namespace penstock::simulator
